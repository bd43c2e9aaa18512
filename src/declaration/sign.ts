import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify as verifySignature,
} from "node:crypto";
import { readFileSync } from "node:fs";
import { meshError } from "../errors.ts";
import { signedText } from "./schema.ts";

export class KeyUnreadable extends meshError(
  "key-unreadable",
  "stalled",
  (f: { file: string; why: string }) =>
    `${f.file}: ${f.why}; expected an ed25519 private key (PEM), as \`mesh up\` makes`,
) {}

/** What a signature covers. */
export interface Signed {
  body: { node: string };
  revision: string;
  sequence: number;
  commit: string;
}

export interface Signer {
  /** ed25519, SPKI, base64: what hosts pin. */
  readonly publicKey: string;
  /** The signature, base64. */
  sign(declaration: Signed): string;
}

/** A new key pair: `privateKey` PEM (PKCS 8), `publicKey` base64 (SPKI). */
export function generateSigningKey(): { privateKey: string; publicKey: string } {
  const pair = generateKeyPairSync("ed25519");
  return {
    privateKey: pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    publicKey: spki(pair.publicKey),
  };
}

/** Reads the controller's key. */
export function createSigner(keyFile: string): Signer {
  let key: KeyObject;
  try {
    key = createPrivateKey(readFileSync(keyFile));
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? "";
    throw new KeyUnreadable(
      { file: keyFile, why: /^E[A-Z]+$/.test(code) ? code : "holds no key" },
      { cause },
    );
  }
  if (key.asymmetricKeyType !== "ed25519")
    throw new KeyUnreadable({ file: keyFile, why: `holds a key of type ${key.asymmetricKeyType}` });
  return {
    publicKey: spki(createPublicKey(key)),
    sign: (declaration) => sign(null, Buffer.from(signedText(declaration)), key).toString("base64"),
  };
}

/** Whether `declaration.signature` is `publicKey`'s (SPKI, base64). A malformed key or signature is no signature. */
export function verify(declaration: Signed & { signature: string }, publicKey: string): boolean {
  if (declaration.signature === "") return false;
  try {
    const key = createPublicKey({ key: Buffer.from(publicKey, "base64"), type: "spki", format: "der" });
    return verifySignature(
      null,
      Buffer.from(signedText(declaration)),
      key,
      Buffer.from(declaration.signature, "base64"),
    );
  } catch {
    return false;
  }
}

function spki(key: KeyObject): string {
  return key.export({ type: "spki", format: "der" }).toString("base64");
}

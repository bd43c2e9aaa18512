import { randomBytes } from "node:crypto";
import { z } from "zod";
import { readIfThere, writeDurably } from "../io/durable.ts";
import { MeshFolderBroken } from "./errors.ts";
import type { Layout } from "./layout.ts";

/**
 * DIR/up.json. `store` and `broker` are URLs of existing ones, or null where `mesh up` runs its own. Ports stay the same
 * across restarts, so that every client finds its part again. `database` is the folder of Postgres' data and programs:
 * outside DIR where the database's account cannot reach DIR. `from` is the plain folder that DIR/catalogue.git was made
 * from. `hosts` are the nodes that have a host.
 */
export const UpState = z.object({
  store: z.string().nullable(),
  broker: z.string().nullable(),
  catalogue: z.string(),
  from: z.string().nullable().default(null),
  ref: z.string(),
  poll: z.string().nullable().default(null),
  database: z.string().nullable(),
  storePort: z.number(),
  brokerPort: z.number(),
  brokerPassword: z.string(),
  httpPort: z.number(),
  hosts: z.array(z.string()),
});
export type UpState = z.infer<typeof UpState>;

export function readState(layout: Layout): UpState | null {
  const text = readIfThere(layout.state);
  if (text === null) return null;
  try {
    return UpState.parse(JSON.parse(text));
  } catch (cause) {
    throw new MeshFolderBroken({ file: layout.state, why: "is not what `mesh up` wrote" }, { cause });
  }
}

export function writeState(layout: Layout, state: UpState): void {
  writeDurably(layout.state, `${JSON.stringify(state, null, 2)}\n`);
}

export function newPassword(): string {
  return randomBytes(24).toString("base64url");
}

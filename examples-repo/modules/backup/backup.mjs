// Writes the key store's content to INTO/keystore-TIME.json and removes the oldest beyond KEEP.
import { readdirSync, rmSync, writeFileSync } from "node:fs";

const { KEYSTORE, INTO, KEEP } = process.env;
const answer = await fetch(`http://${KEYSTORE}/dump`, { signal: AbortSignal.timeout(10_000) });
if (!answer.ok) throw new Error(`key store answered ${answer.status}`);
const name = `keystore-${new Date().toISOString().replaceAll(":", "-")}.json`;
writeFileSync(`${INTO}/${name}`, await answer.text(), { mode: 0o600 });
const copies = readdirSync(INTO)
  .filter((entry) => /^keystore-.*\.json$/.test(entry))
  .sort();
for (const old of copies.slice(0, Math.max(0, copies.length - Number(KEEP)))) rmSync(`${INTO}/${old}`);
console.log(`wrote ${name}`);

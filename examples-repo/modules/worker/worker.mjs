// Takes a job { name, text } from the list `jobs`, counts its words, and writes the result under `job-NAME`.
import { setTimeout as pause } from "node:timers/promises";

const { KEYSTORE, PAUSE_MS } = process.env;
let stopping = false;
process.on("SIGTERM", () => {
  stopping = true;
});

async function keystore(method, path, body) {
  const answer = await fetch(`http://${KEYSTORE}${path}`, { method, body, signal: AbortSignal.timeout(2000) });
  return answer.ok ? (await answer.text()).trim() : null;
}

console.log("worker waits for jobs");
while (!stopping) {
  try {
    const job = await keystore("DELETE", "/lists/jobs");
    if (job) {
      const { name, text } = JSON.parse(job);
      const words = text.split(/\s+/).filter(Boolean).length;
      await keystore("PUT", `/keys/job-${name}`, `${words} words`);
      console.log(`job ${name}: ${words} words`);
      continue;
    }
  } catch (error) {
    console.log(`key store: ${error.message}`);
  }
  await pause(Number(PAUSE_MS));
}
console.log("worker stopped");

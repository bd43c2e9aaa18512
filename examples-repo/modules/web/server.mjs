// GET / greets and counts, POST /jobs leaves a text for the worker, GET /jobs/NAME shows its result.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const { ADDRESS, PORT, NODE_LABEL, CONFIG, KEYSTORE } = process.env;

const config = Object.fromEntries(
  readFileSync(CONFIG, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => line.split(/ = (.*)/s).slice(0, 2)),
);

/** The key store's answer; null when it is away: the page is served all the same. */
async function keystore(method, path, body) {
  try {
    const answer = await fetch(`http://${KEYSTORE}${path}`, { method, body, signal: AbortSignal.timeout(1000) });
    return answer.ok ? (await answer.text()).trim() : null;
  } catch {
    return null;
  }
}

async function bodyOf(request) {
  let text = "";
  for await (const chunk of request) {
    text += chunk;
    if (text.length > 65_536) throw new Error("too large");
  }
  return text;
}

async function answer(request) {
  const [, first, second] = new URL(request.url, "http://web").pathname.split("/");
  if (first === "health") return "ok";
  if (first === "jobs" && request.method === "POST") {
    const name = randomUUID();
    await keystore("POST", "/lists/jobs", JSON.stringify({ name, text: await bodyOf(request) }));
    return name;
  }
  if (first === "jobs" && second) return (await keystore("GET", `/keys/job-${second}`)) ?? "not done yet";
  const visits = await keystore("POST", "/count/visits");
  return `${config.greeting} from ${NODE_LABEL} (${config.colour}), visit ${visits ?? "not counted"}`;
}

createServer(async (request, response) => {
  try {
    response.end(`${await answer(request)}\n`);
  } catch (error) {
    response.writeHead(500).end(`${error.message}\n`);
  }
}).listen(Number(PORT), ADDRESS, () => console.log(`web listens on ${ADDRESS}:${PORT}`));

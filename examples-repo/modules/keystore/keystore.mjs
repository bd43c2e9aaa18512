// A key-value store: GET/PUT/DELETE /keys/NAME, POST /count/NAME adds one, POST /lists/NAME appends, DELETE /lists/NAME takes the first.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const { ADDRESS, PORT, DATA } = process.env;
const file = `${DATA}/data.json`;

function load() {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return { keys: {}, lists: {} };
  }
}

const data = load();
function save() {
  writeFileSync(`${file}.new`, JSON.stringify(data));
  renameSync(`${file}.new`, file);
}

const handlers = {
  "GET keys": (name) => data.keys[name] ?? null,
  "PUT keys": (name, body) => {
    data.keys[name] = body;
    save();
    return body;
  },
  "DELETE keys": (name) => {
    delete data.keys[name];
    save();
    return "";
  },
  "POST count": (name) => {
    data.keys[name] = String(Number(data.keys[name] ?? 0) + 1);
    save();
    return data.keys[name];
  },
  "POST lists": (name, body) => {
    data.lists[name] = [...(data.lists[name] ?? []), body];
    save();
    return String(data.lists[name].length);
  },
  "DELETE lists": (name) => {
    const first = data.lists[name]?.shift() ?? null;
    if (first !== null) save();
    return first;
  },
};

async function bodyOf(request) {
  let text = "";
  for await (const chunk of request) {
    text += chunk;
    if (text.length > 65_536) throw new Error("too large");
  }
  return text;
}

createServer(async (request, response) => {
  try {
    const [, kind, name] = new URL(request.url, "http://keystore").pathname.split("/");
    if (kind === "health") return response.end("ok\n");
    if (kind === "dump") return response.end(`${JSON.stringify(data)}\n`);
    const handle = handlers[`${request.method} ${kind}`];
    const answer = handle && name ? handle(decodeURIComponent(name), await bodyOf(request)) : null;
    response.writeHead(answer === null ? 404 : 200).end(answer === null ? "none\n" : `${answer}\n`);
  } catch (error) {
    response.writeHead(500).end(`${error.message}\n`);
  }
}).listen(Number(PORT), ADDRESS, () => console.log(`keystore listens on ${ADDRESS}:${PORT}`));

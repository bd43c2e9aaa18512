/** Files of a catalogue by path: text, or what becomes JSON. */
export type Files = Record<string, string | object | null>;

/**
 * Answers its greeting over HTTP, and appends it to `starts` in its state each time it starts: so a test sees how often
 * each version ran.
 */
export const SERVER = `
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
const { ADDRESS, PORT, CONFIG, STATE, NODE_LABEL } = process.env;
const greeting = readFileSync(CONFIG, "utf8").trim();
appendFileSync(STATE + "/starts", greeting + "\\n");
createServer((request, response) => response.end(greeting + " from " + NODE_LABEL + "\\n")).listen(Number(PORT), ADDRESS);
process.on("SIGTERM", () => process.exit(0));
`;

export const WEB_PORT = 18080;
export const STORE_PORT = 18100;

/** Nobody is silent for three heartbeats on a busy machine, and yet a test need not wait long for one that is. */
const MESH = {
  name: "test",
  rollout: { batches: [1, "100%"], timeout: "60s" },
  host: {
    check: "1s",
    heartbeat: "2s",
    handover: { minUp: "200ms" },
    restart: { first: "100ms", max: "1s", resetAfter: "5s" },
    stop: { grace: "3s" },
  },
};

export function meshFile(change: { rollout?: object; host?: object; guard?: object } = {}): object {
  return {
    ...MESH,
    ...change,
    rollout: { ...MESH.rollout, ...change.rollout },
    host: { ...MESH.host, ...change.host },
  };
}

function server(name: string, tier: number, port: number, more: object): object {
  return {
    name,
    tier,
    ports: { http: port },
    settings: { greeting: "hello" },
    state: {},
    ...more,
    resources: [
      { id: "program", type: "file", path: `/opt/${name}/server.mjs`, source: "server.mjs" },
      { id: "config", type: "file", path: `/etc/${name}.conf`, content: "${setting:greeting}\n" },
      {
        // Runs once for each greeting, and says so: what runs once must not run twice.
        id: "announce",
        type: "process",
        name: `${name}-announce`,
        run: "once",
        command: ["sh", "-c", 'echo "$GREETING" >>"$STATE/announced"'],
        env: { GREETING: "${setting:greeting}", STATE: "${state}" },
      },
      {
        id: "server",
        type: "process",
        name,
        command: ["node", "${path:program}"],
        env: {
          ADDRESS: "${node:address}",
          PORT: "${port:http}",
          CONFIG: "${path:config}",
          STATE: "${state}",
          NODE_LABEL: "${node:name}",
        },
        restartOn: ["program", "config"],
        check: { http: "http://${node:address}:${port:http}/" },
      },
    ],
  };
}

/** A module of one file in tier 0 whose text is the setting `note`. */
export const BASE = {
  name: "base",
  tier: 0,
  settings: { note: "first" },
  resources: [
    { id: "note", type: "file", path: "/etc/note", content: "${setting:note} on ${node:name}\n" },
    { id: "spool", type: "directory", path: "/var/spool/base" },
  ],
};

/** A module of one process that does nothing; its program's path tells it apart. */
export const WORKER = {
  name: "worker",
  tier: 2,
  settings: { pace: "1" },
  resources: [
    { id: "program", type: "file", path: "/opt/worker/worker.sh", content: "while :; do sleep 1; done\n" },
    {
      id: "loop",
      type: "process",
      name: "worker",
      command: ["sh", "${path:program}"],
      env: { PACE: "${setting:pace}" },
      restartOn: ["program"],
    },
  ],
};

/** Four nodes, a module in each tier: `base` everywhere, `store` on store-1, `web` on two, `worker` on worker-1. */
export function meshCatalogue(subnet: string, change: Parameters<typeof meshFile>[0] = {}): Files {
  return {
    "mesh.json": meshFile(change),
    "groups/all.json": { modules: ["base"] },
    "groups/web.json": { match: { role: ["web"] }, modules: ["web"] },
    "nodes/store-1.json": { address: `${subnet}.3`, labels: { role: "store" }, modules: ["store"] },
    "nodes/web-1.json": { address: `${subnet}.1`, labels: { role: "web" } },
    "nodes/web-2.json": { address: `${subnet}.2`, labels: { role: "web" } },
    "nodes/worker-1.json": { address: `${subnet}.4`, labels: { role: "worker" }, modules: ["worker"] },
    "modules/base/module.json": BASE,
    "modules/store/module.json": server("store", 1, STORE_PORT, { seats: { store: { port: "http" } } }),
    "modules/store/server.mjs": SERVER,
    "modules/web/module.json": server("web", 2, WEB_PORT, { requires: ["base"] }),
    "modules/web/server.mjs": SERVER,
    "modules/worker/module.json": WORKER,
  };
}

/** The files that give every module another value, and so touch each tier and each node. */
export function greet(note: string, change: Parameters<typeof meshFile>[0] = {}): Files {
  const settings = {
    base: { note },
    store: { greeting: note },
    web: { greeting: note },
    worker: { pace: note },
  };
  return { "mesh.json": { ...meshFile(change), settings } };
}

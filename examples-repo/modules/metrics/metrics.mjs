// Answers /metrics in the Prometheus text format.
import { createServer } from "node:http";
import { freemem, loadavg, totalmem, uptime } from "node:os";

const { ADDRESS, PORT, NODE_LABEL } = process.env;

createServer((_request, response) => {
  const lines = [
    ["node_load1", loadavg()[0]],
    ["node_memory_free_bytes", freemem()],
    ["node_memory_total_bytes", totalmem()],
    ["node_uptime_seconds", Math.round(uptime())],
  ].map(([name, value]) => `${name}{node="${NODE_LABEL}"} ${value}`);
  response.end(`${lines.join("\n")}\n`);
}).listen(Number(PORT), ADDRESS, () => console.log(`metrics listens on ${ADDRESS}:${PORT}`));

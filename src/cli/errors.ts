import { meshError } from "../errors.ts";

export class ControllerUnreachable extends meshError(
  "controller-unreachable",
  "wait",
  (f: { broker: string; ms: number }) =>
    `no controller answered within ${f.ms / 1000} s on the broker at ${f.broker}; see \`mesh doctor\``,
) {}

export class MeshDown extends meshError(
  "mesh-down",
  "wait",
  (f: { dir: string; broker: string }) =>
    `the mesh in ${f.dir} is down (broker ${f.broker} does not answer); start it with \`mesh up --dir ${f.dir}\``,
) {}

export class HostUnreachable extends meshError(
  "host-unreachable",
  "wait",
  (f: { node: string; ms: number }) =>
    `the host of node ${f.node} did not answer within ${f.ms / 1000} s; see \`mesh node ${f.node}\``,
) {}

export class BadArgument extends meshError(
  "bad-argument",
  "stalled",
  (f: { what: string; found: string; allowed: string }) =>
    `${f.what}: found "${f.found}", expected ${f.allowed}`,
) {}

export class TargetExists extends meshError(
  "target-exists",
  "stalled",
  (f: { dir: string }) => `${f.dir} exists and is not empty; name a new folder`,
) {}

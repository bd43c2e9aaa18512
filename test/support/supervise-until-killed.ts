/**
 * A host's supervision as a program of its own, to be killed: DIR FAULT SPEC_JSON. Prints "up" once the spec was ensured.
 * With FAULT "x#n" it dies by SIGKILL the nth time it reaches x.
 */
import { userInfo } from "node:os";
import { createSupervisor } from "../../src/host/supervision/supervisor.ts";
import { faultAt } from "../../src/io/faults.ts";

const [dir, fault, spec] = process.argv.slice(2) as [string, string, string];
const { uid, gid, username } = userInfo();
const supervisor = createSupervisor({
  dir,
  invoker: { uid, gid, name: username },
  real: false,
  path: process.env.PATH ?? "",
  fault: faultAt(fault),
});
await supervisor.resume();
if (spec) await supervisor.ensure(JSON.parse(spec));
console.log("up");
setInterval(() => undefined, 1_000);

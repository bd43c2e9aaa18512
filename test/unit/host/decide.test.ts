import { expect, test } from "vitest";
import { decide, type Observed, type Step } from "../../../src/host/decide.ts";
import { type Entry, emptyState, type HostState, keyOf } from "../../../src/host/state.ts";
import type { DeclaredResource } from "../../../src/resources/declared.ts";
import type { Observation } from "../../../src/resources/driver.ts";
import { aDeclarationOf, aDirectory, aFile, aService, aUser } from "../../support/host.ts";

const same: Observation = { state: "same", fields: [], detail: "" };
const absent: Observation = { state: "absent", fields: [], detail: "" };
const differs: Observation = { state: "differs", fields: ["mode"], detail: "mode 0644 -> 0600" };

function recorded(...resources: DeclaredResource[]): HostState {
  const entries = resources.map((r): [string, Entry] => [
    keyOf(r),
    { id: r.id, module: r.module, type: r.type, digest: r.digest, made: true, record: {}, left: null },
  ]);
  return { ...emptyState(), entries: Object.fromEntries(entries) };
}

function seen(all: Record<string, Observation | Error>, more: Partial<Observed> = {}): Observed {
  return { resources: new Map(Object.entries(all)), failing: new Map(), supervised: [], ...more };
}

const say = (step: Step): string => {
  const what = "resource" in step ? step.resource.id : "entry" in step ? step.entry.id : step.id;
  return `${step.kind} ${what}${step.kind === "leave" ? ` for ${step.for}` : ""}${step.kind === "apply" ? ` ${step.why}` : ""}`;
};

function expectSteps(declared: DeclaredResource[], state: HostState, observed: Observed, now = 1_000) {
  return expect(decide(aDeclarationOf(declared).body, state, observed, now).map(say));
}

const conf = aFile("web.conf", "/etc/web.conf", "a");

test("does nothing when everything is as declared and recorded", () => {
  expectSteps([conf], recorded(conf), seen({ "web.conf": same })).toEqual([]);
});

test("applies what is absent as new, what moved as drift, what the declaration changed as changed", () => {
  const drifted = aFile("web.drifted", "/etc/drifted", "a");
  const old = aFile("web.changed", "/etc/changed", "a");
  const changed = aFile("web.changed", "/etc/changed", "b");
  const observed = seen({ "web.conf": absent, "web.drifted": differs, "web.changed": differs });
  expectSteps([conf, drifted, changed], recorded(drifted, old), observed).toEqual([
    "apply web.conf new",
    "apply web.drifted drift",
    "apply web.changed changed",
  ]);
});

test("records what is there already without changing it", () => {
  expectSteps([conf], emptyState(), seen({ "web.conf": same })).toEqual(["adopt web.conf"]);
});

test("removes what is no longer declared, last, processes first and folders from the deepest", () => {
  const gone = [
    aUser("old.user", "old"),
    aDirectory("old.top", "/srv/old"),
    aDirectory("old.deep", "/srv/old/deep"),
    aFile("old.file", "/srv/old/deep/file", "x"),
    aService("old.server", ["sleep", "9"]),
  ];
  expectSteps([conf], recorded(...gone), seen({ "web.conf": absent })).toEqual([
    "apply web.conf new",
    "prune old.server",
    "prune old.file",
    "prune old.deep",
    "prune old.top",
    "prune old.user",
  ]);
});

test("moves ownership with the path: a renamed id removes nothing", () => {
  const renamed = aFile("site.conf", "/etc/web.conf", "a");
  expectSteps([renamed], recorded(conf), seen({ "site.conf": same })).toEqual(["adopt site.conf"]);
});

test("removes the old path of a resource whose path changed after the new one is there", () => {
  const moved = aFile("web.conf", "/etc/web/web.conf", "a");
  expectSteps([moved], recorded(conf), seen({ "web.conf": absent })).toEqual([
    "apply web.conf new",
    "prune web.conf",
  ]);
});

test("stops what is taken over right before what takes it", () => {
  const old = aService("old.server", ["sleep", "1"]);
  const next = aService("web.server", ["sleep", "2"], { takes: ["old.server"] });
  expectSteps([conf, next], recorded(conf, old), seen({ "web.conf": same, "web.server": absent })).toEqual([
    "leave old.server for web.server",
    "apply web.server new",
  ]);
});

test("clears a path whose kind changed, and a file where a folder is needed", () => {
  const file = aFile("web.data", "/srv/data", "x");
  const directory = aDirectory("web.data", "/srv/data");
  expectSteps([directory], recorded(file), seen({ "web.data": differs })).toEqual([
    "leave web.data for web.data",
    "apply web.data new",
  ]);
  const below = aFile("web.below", "/srv/data/below", "x");
  expectSteps([below], recorded(file), seen({ "web.below": absent })).toEqual([
    "leave web.data for web.below",
    "apply web.below new",
  ]);
});

test("waits until a failed resource may be tried again, and tries one that was changed at once", () => {
  const state = recorded();
  state.attempts["web.conf"] = { digest: conf.digest, tries: 1, error: "no space", notBefore: 5_000 };
  expectSteps([conf], state, seen({ "web.conf": absent })).toEqual(["hold web.conf"]);
  expectSteps([conf], state, seen({ "web.conf": absent }), 5_000).toEqual(["apply web.conf retry"]);
  const other = aFile("web.conf", "/etc/web.conf", "b");
  expectSteps([other], state, seen({ "web.conf": absent })).toEqual(["apply web.conf new"]);
  expectSteps([conf], { ...state, entries: recorded(conf).entries }, seen({ "web.conf": same })).toEqual([
    "settle web.conf",
  ]);
});

test("counts a process that ended badly as failed without touching it", () => {
  const server = aService("web.server", ["false"]);
  const observed = seen({ "web.server": same }, { failing: new Map([["web.server", "halted"]]) });
  expectSteps([server], recorded(server), observed).toEqual(["fail web.server"]);
});

test("removes a process that runs and that no record and no declaration knows", () => {
  expectSteps([conf], recorded(conf), seen({ "web.conf": same }, { supervised: ["old.server"] })).toEqual([
    "prune old.server",
  ]);
});

test("leaves alone what was deliberately left", () => {
  const state = recorded(aUser("old.user", "old"));
  state.entries["user:old"]!.left = { note: "stays", revision: "r" };
  expectSteps([], state, seen({})).toEqual([]);
});

test("takes an answer that is missing for an error, never for absent", () => {
  expectSteps([conf], recorded(conf), seen({ "web.conf": new Error("getent exited 3") })).toEqual([
    "fail web.conf",
  ]);
});

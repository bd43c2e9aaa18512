/** The documents that verbs answer and `--json` prints, as far as the tables read them. Times are ISO 8601 UTC. */
export interface StatusDoc {
  mesh: string;
  frozen: Frozen | null;
  catalogue: {
    ref: string;
    commit: string | null;
    subject: string | null;
    seenAt: string | null;
    deployed: string | null;
    problems: ProblemDoc[];
  };
  plan: { id: number; commit: string; state: string; tier: number | null; reason: string | null } | null;
  controllers: Array<{ id: string; role: string; since: string }>;
  nodes: NodeEntry[];
  totals: Record<string, number>;
}
export interface Frozen {
  reason: string | null;
  by: string;
  since: string;
}
export interface ProblemDoc {
  file: string;
  line: number;
  column: number;
  path: string;
  message: string;
}
export interface NodeEntry {
  name: string;
  state: string;
  revision: string | null;
  commit: string | null;
  seenAt: string | null;
  handovers: HandoverDoc[];
  error?: string | null;
}
export interface HandoverDoc {
  resource: string;
  replaces: string;
  state: string;
  passed: number;
  required: number;
  gapMs: number | null;
  reason: string | null;
  since: string;
}
export interface NodeDoc extends NodeEntry {
  resources: Array<{
    id: string;
    type: string;
    state: string;
    process: { state: string; pid: number | null; restarts: number; since: string | null } | null;
    error: string | null;
    note?: string | null;
  }>;
  declared: { revision: string; sequence: number; commit: string; tier: number } | null;
}
export interface WhyDoc {
  node: string;
  resource: string;
  state: string;
  error: string | null;
  note: string | null;
  output: string[];
  process: {
    state: string;
    pid: number | null;
    restarts: number;
    since: string | null;
    exit?: string | null;
  } | null;
  nodeState: string;
  nodeError: string | null;
  declared: boolean;
  placedBy: string[];
  requires: string[];
  requiredBy: string[];
  commit: string | null;
  events: EventDoc[];
}
export interface PlanDoc {
  id: number;
  commit: string;
  base: string | null;
  state: string;
  reason: string | null;
  createdAt: string;
  finishedAt: string | null;
  supersededBy?: number | null;
  tiers: Array<{
    tier: number;
    state: string;
    builds: Array<{ module: string; bundle: string; system: string; state: string; error: string | null }>;
    nodes: Array<{
      node: string;
      batch: number | null;
      state: string;
      revision: string;
      sentAt: string | null;
      appliedAt: string | null;
      error: string | null;
    }>;
  }>;
}
export interface EventDoc {
  id: number;
  at: string;
  node: string;
  kind: string;
  resource: string | null;
  detail: string;
}

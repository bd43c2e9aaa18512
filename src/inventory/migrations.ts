/**
 * Numbered changes of the schema, oldest first. Only expanding ones: the release before must go on working on the result.
 * Never edit one that was released; append.
 */
export const MIGRATIONS: ReadonlyArray<{ id: number; name: string; sql: string }> = [
  {
    id: 1,
    name: "first tables",
    sql: `
CREATE TABLE mesh.controllers (
  id text PRIMARY KEY,
  role text NOT NULL,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row. The epoch is a key column, so that FOR KEY SHARE holds off a takeover (which changes it) but not a renewal.
CREATE TABLE mesh.active (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  epoch bigint NOT NULL UNIQUE,
  holder text,
  since timestamptz,
  renewed_at timestamptz
);
INSERT INTO mesh.active (epoch) VALUES (0);

CREATE TABLE mesh.counters (name text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO mesh.counters VALUES ('generation', 0);

CREATE TABLE mesh.catalogue_state (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  ref text,
  commit text,
  subject text,
  seen_at timestamptz,
  problems jsonb NOT NULL DEFAULT '[]',
  good_commit text,
  good_subject text,
  base text,
  mesh jsonb
);
INSERT INTO mesh.catalogue_state DEFAULT VALUES;

CREATE TABLE mesh.module_versions (
  tree text PRIMARY KEY,
  name text NOT NULL,
  manifest text NOT NULL,
  sources text NOT NULL,
  kept_at timestamptz NOT NULL DEFAULT now()
);

-- body is the whole plan as JSON text; the other columns repeat what lists need of it.
CREATE TABLE mesh.plans (
  id bigint PRIMARY KEY,
  commit text NOT NULL,
  subject text NOT NULL,
  base text,
  state text NOT NULL,
  tier smallint,
  reason text,
  created_at timestamptz NOT NULL,
  finished_at timestamptz,
  body text NOT NULL
);
CREATE INDEX plans_state ON mesh.plans (state, id);

CREATE TABLE mesh.plan_commands (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  plan bigint NOT NULL,
  command text NOT NULL,
  node text,
  by text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  worked_at timestamptz,
  refusal text
);
CREATE INDEX plan_commands_open ON mesh.plan_commands (plan) WHERE worked_at IS NULL;

-- What nodes were sent, by digest: enough to compose their old modules again. trees: the module versions it names.
CREATE TABLE mesh.views (
  digest text PRIMARY KEY,
  view text NOT NULL,
  trees text[] NOT NULL,
  kept_at timestamptz NOT NULL DEFAULT now()
);

-- What a plan's tiers give each node; sent is the digest of its view once the tier was released.
CREATE TABLE mesh.targets (
  plan bigint NOT NULL,
  tier smallint NOT NULL,
  node text NOT NULL,
  revision text NOT NULL,
  sent text NOT NULL,
  PRIMARY KEY (plan, tier, node)
);

CREATE TABLE mesh.bodies (
  revision text PRIMARY KEY,
  node text NOT NULL,
  body text NOT NULL,
  kept_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE mesh.nodes (
  name text PRIMARY KEY,
  declared boolean NOT NULL DEFAULT true,
  address text NOT NULL DEFAULT '',
  labels jsonb NOT NULL DEFAULT '{}',
  mode text NOT NULL DEFAULT 'enforce',
  retire boolean NOT NULL DEFAULT false,
  declared_at timestamptz NOT NULL DEFAULT now(),
  released_at timestamptz,
  retired_at timestamptz,
  wanted_seq bigint NOT NULL DEFAULT 0,
  published_seq bigint NOT NULL DEFAULT 0,
  wanted_revision text,
  wanted_commit text,
  wanted_tier smallint,
  wanted_at timestamptz,
  sent text
);
CREATE INDEX nodes_unpublished ON mesh.nodes (name) WHERE wanted_seq > published_seq;

-- Narrow and apart: written once per heartbeat.
CREATE TABLE mesh.seen (
  node text PRIMARY KEY,
  at timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE mesh.reports (
  node text PRIMARY KEY,
  host_start text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  sequence bigint NOT NULL,
  revision text,
  commit text,
  outcome text NOT NULL,
  error text,
  digest text NOT NULL,
  progress text NOT NULL,
  handovers jsonb NOT NULL DEFAULT '[]',
  body text NOT NULL
);

CREATE TABLE mesh.events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node text NOT NULL,
  host_start text NOT NULL,
  number bigint NOT NULL,
  place int NOT NULL,
  at timestamptz NOT NULL,
  kind text NOT NULL,
  resource text,
  detail text NOT NULL,
  kept_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (node, host_start, number, place)
);

CREATE TABLE mesh.folded (
  stream text PRIMARY KEY,
  created text NOT NULL,
  seq bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE mesh.rejected (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream text NOT NULL,
  seq bigint NOT NULL,
  node text,
  reason text NOT NULL,
  body text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);

-- A port stays taken until the plan in freed_by is done.
CREATE TABLE mesh.ports (
  node text NOT NULL,
  slot text NOT NULL,
  port int NOT NULL,
  freed_by bigint,
  PRIMARY KEY (node, slot)
);

CREATE TABLE mesh.calls (
  id text PRIMARY KEY,
  verb text NOT NULL,
  result jsonb NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX calls_at ON mesh.calls (at);

-- node '' is the whole mesh.
CREATE TABLE mesh.freezes (
  node text PRIMARY KEY,
  reason text NOT NULL,
  by text NOT NULL,
  since timestamptz NOT NULL DEFAULT now()
);
`,
  },
];

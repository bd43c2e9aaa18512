import fc from "fast-check";
import { expect, it } from "vitest";
import { history, play } from "./history.ts";

const RUNS = Number(process.env.FUZZ_RUNS ?? 10_000);
/** The same histories in every run, so that a failure is the change's own; `make fuzz` draws new ones ("random"). */
const SEED = process.env.FUZZ_SEED ?? "20261201";

it(`keeps every promise of a plan over ${RUNS} generated histories`, { timeout: 3_600_000 }, () => {
  const seed = SEED === "random" ? {} : { seed: Number(SEED) };
  const result = fc.check(fc.property(history, play), { numRuns: RUNS, ...seed });
  if (result.failed) expect.fail(`${result.errorInstance}\n${fc.defaultReportMessage(result)}`);
});

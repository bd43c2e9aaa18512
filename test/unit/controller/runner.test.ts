import { describe, expect, it } from "vitest";
import { createRunner } from "../../../src/controller/runner.ts";

function gate() {
  let open!: () => void;
  const promise = new Promise<void>((done) => {
    open = done;
  });
  return { promise, open };
}

describe("runner", () => {
  it("makes one further run of all asks that come during a run", async () => {
    const gates = [gate(), gate(), gate()];
    let runs = 0;
    const runner = createRunner(() => gates[runs++]!.promise);
    const first = runner.ask();
    const later = [runner.ask(), runner.ask(), runner.ask()];
    expect(runs).toBe(1);
    gates[0]!.open();
    await first;
    gates[1]!.open();
    await Promise.all(later);
    expect(runs).toBe(2);
  });

  it("goes on after a run that threw, and tells only those who waited for it", async () => {
    let runs = 0;
    const runner = createRunner(async () => {
      runs++;
      if (runs === 1) throw new Error("first");
    });
    const first = runner.ask();
    const second = runner.ask();
    await expect(first).rejects.toThrow("first");
    await second;
    expect(runs).toBe(2);
  });

  it("begins nothing once stopped, and waits for the run under way", async () => {
    const under = gate();
    let runs = 0;
    const runner = createRunner(() => {
      runs++;
      return under.promise;
    });
    const first = runner.ask();
    const second = runner.ask();
    const stopped = runner.stop();
    under.open();
    await Promise.all([first, second, stopped]);
    await runner.ask();
    expect(runs).toBe(1);
  });
});

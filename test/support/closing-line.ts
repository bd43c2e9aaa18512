import type { Reporter, TestModule } from "vitest/node";

/** Ends a run with one plain line, for whoever reads only the end of a log: "812 passed, 0 failed, 3 skipped". */
export class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const count = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      let tests = 0;
      for (const test of module.children.allTests()) {
        tests += 1;
        const { state } = test.result();
        if (state === "passed" || state === "failed" || state === "skipped") count[state] += 1;
      }
      if (tests === 0 || (module.errors().length > 0 && module.state() === "failed")) count.failed += 1;
    }
    console.log(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
  }
}

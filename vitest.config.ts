import { defineConfig } from "vitest/config";
import { ClosingLine } from "./test/support/closing-line.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/build.ts", "test/support/postgres-server.ts"],
    pool: "forks",
    // A whole mesh is a dozen processes: more of them at once would only wait for each other.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: [process.env.CI ? "default" : "dot", new ClosingLine()],
  },
});

import type { Command } from "commander";
import type { Problem } from "../../catalogue/catalogue.ts";
import type { App, Run } from "../app.ts";
import { EXIT } from "../exit.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("[catalogue]", "a folder, or a repository with #REF", ".")
    .option("--json", "one document")
    .addHelpText(
      "after",
      "\nExamples:\n  $ mesh check examples-repo\n  $ mesh check .mesh/catalogue.git#main",
    )
    .action((target: string, options: { json?: boolean }) =>
      run(async () => {
        const { problems, summary } = await check(target);
        if (options.json) app.out.json({ problems });
        else if (problems.length > 0) app.out.print(problems.map(problemLine).join("\n"));
        else app.out.print(summary);
        return problems.length > 0 ? EXIT.failed : EXIT.done;
      }),
    );
}

export function problemLine(problem: Problem): string {
  // One of the whole catalogue (a remote that cannot be reached) stands in no file.
  if (problem.file === "") return problem.message;
  return `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`;
}

/** Reads, validates and composes all nodes; needs no server. */
async function check(target: string): Promise<{ problems: Problem[]; summary: string }> {
  const [{ readForCheck }, { allProblems, problemsOf }] = await Promise.all([
    import("../../catalogue/check.ts"),
    import("../../composition/compose.ts"),
  ]);
  const result = await readForCheck(target);
  if (!result.ok) return { problems: await allProblems(result), summary: "" };
  const { nodes, modules } = result.catalogue;
  const problems = problemsOf(result.catalogue);
  return {
    problems,
    summary: `${target} is good: ${count(nodes.size, "node")}, ${count(modules.size, "module")}`,
  };
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

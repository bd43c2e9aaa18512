import type { Command } from "commander";

export type Shell = "bash" | "zsh" | "fish";
export const SHELLS: Shell[] = ["bash", "zsh", "fish"];

interface Words {
  name: string;
  summary: string;
  words: string[];
}

/** A script that completes commands, their subcommands and flags. Written from the commands themselves. */
export function completionScript(shell: Shell, program: Command): string {
  const commands = program.commands.map(wordsOf);
  if (shell === "fish") return fish(commands);
  const bash = bashFunction(commands);
  if (shell === "bash") return `${bash}complete -o default -F _mesh mesh\n`;
  return `#compdef mesh\nautoload -U +X bashcompinit && bashcompinit\n${bash}complete -o default -F _mesh mesh\n`;
}

function wordsOf(command: Command): Words {
  const flags = command.options
    .filter((option) => !option.hidden)
    .map((option) => option.long ?? option.short ?? "")
    .filter(Boolean);
  const choices = command.registeredArguments.flatMap((argument) => argument.argChoices ?? []);
  const sub = command.commands.map((one) => one.name());
  return {
    name: command.name(),
    summary: command.description(),
    words: [...sub, ...choices, ...flags, "--help"],
  };
}

function bashFunction(commands: Words[]): string {
  const cases = commands.map((c) => `    ${c.name}) words="${c.words.join(" ")}" ;;`).join("\n");
  return `_mesh() {
  local words cur="\${COMP_WORDS[COMP_CWORD]}"
  case "\${COMP_WORDS[1]}" in
${cases}
    *) words="${commands.map((c) => c.name).join(" ")} --help --version --context" ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words="${commands.map((c) => c.name).join(" ")} --help --version --context"
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
`;
}

function fish(commands: Words[]): string {
  const lines = commands.flatMap((c) => [
    `complete -c mesh -f -n __fish_use_subcommand -a ${c.name} -d '${c.summary.replaceAll("'", "\\'")}'`,
    ...c.words.map((word) =>
      word.startsWith("--")
        ? `complete -c mesh -n '__fish_seen_subcommand_from ${c.name}' -l ${word.slice(2)}`
        : `complete -c mesh -n '__fish_seen_subcommand_from ${c.name}' -a ${word}`,
    ),
  ]);
  return `${lines.join("\n")}\n`;
}

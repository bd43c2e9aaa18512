/** Lines of JSON on stderr, one an entry: `{ time, level, node, …facts, msg }`. */
export interface HostLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

const QUIET = ["warn", "error", "fatal", "silent"];

export function createHostLog(level: string, node: string): HostLog {
  const write = (name: string) => (facts: object, msg: string) => {
    process.stderr.write(
      `${JSON.stringify({ time: new Date().toISOString(), level: name, node, ...facts, msg })}\n`,
    );
  };
  const nothing = () => undefined;
  return {
    info: QUIET.includes(level) ? nothing : write("info"),
    warn: ["error", "fatal", "silent"].includes(level) ? nothing : write("warn"),
  };
}

/** Lines of JSON on stderr, one an entry: `{ time, level, node, …facts, msg }`. */
export interface HostLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

const QUIET = ["warn", "error", "fatal", "silent"];

export function createHostLog(level: string, node: string): HostLog {
  let last = { text: "", at: 0 };
  const write = (name: string) => (facts: object, msg: string) => {
    const text = `${name} ${JSON.stringify(facts)} ${msg}`;
    const at = Date.now();
    // What cannot be reached is tried for ever: the same line is said once a minute.
    if (text === last.text && at - last.at < 60_000) return;
    last = { text, at };
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

import { z } from "zod";

/** Names of groups, modules, seats, ports, settings, secrets, bundles and ids (DESIGN: catalogue). */
export const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
/** Node names: several such parts joined by dots. */
export const NODE_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/;

export const Name = z
  .string()
  .regex(NAME, "must be lower-case letters, digits and inner hyphens, at most 63 characters");
/** Files are named after nodes (`run/host-<node>.life.prev.tmp`), and a file's name has at most 255 bytes. */
export const NODE_NAME_MOST = 200;

const DURATION = /^(\d{1,9})(ms|s|m|h)$/;
const UNIT = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** "500ms", "5s", "10m" or "1h" to milliseconds; null for anything else. */
export function parseDuration(text: string): number | null {
  const match = DURATION.exec(text);
  return match ? Number(match[1]) * UNIT[match[2] as keyof typeof UNIT] : null;
}

/** A duration as people write it ("500ms", "5s", "10m", "1h"); parsed to milliseconds. */
export const Duration = z
  .string()
  .regex(DURATION, 'must be a duration such as "500ms", "5s", "10m" or "1h"')
  .transform((text) => parseDuration(text) as number);

/** An octal mode as text ("0644"); a number is refused because JSON has no octal. */
export const Mode = z.string().regex(/^[0-7]{3,4}$|^0[0-7]{4}$/, 'must be an octal string such as "0644"');

/** Text that can be an argument, a variable or a file: anything but a zero byte. */
export const PlainText = z
  .string()
  .refine((text) => !text.includes("\u0000"), "must not hold a zero byte (\\u0000)");

/** An absolute path without `.`, `..`, empty parts or a trailing slash. */
export const AbsolutePath = PlainText.refine(
  (path) =>
    path.startsWith("/") &&
    path.length > 1 &&
    path
      .slice(1)
      .split("/")
      .every((p) => p !== "" && p !== "." && p !== ".."),
  'must be an absolute path without ".", ".." or empty parts',
);

/** A home or a shell: "/" is a common home, and a colon or a line end would break the line in /etc/passwd. */
export const AccountPath = z
  .string()
  .refine((path) => path === "/" || AbsolutePath.safeParse(path).success, {
    error: 'must be an absolute path without ".", ".." or empty parts',
    abort: true,
  })
  .refine((path) => !/[:\p{Cc}]/u.test(path), "must hold no colon and no control character");

/** Account and group names as useradd takes them: 1 to 32 characters, first a letter or `_`. */
export const AccountName = z
  .string()
  .regex(
    /^[a-z_][a-z0-9_-]{0,31}$/,
    "must be 1 to 32 characters of a-z, 0-9, _ and -, the first a letter or _",
  );

/** The signals that a program on Linux can be sent, but for those of a terminal or a fault. */
const SIGNALS = (
  "HUP INT QUIT ABRT KILL USR1 USR2 PIPE ALRM TERM STKFLT CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO " +
  "POLL PWR TRAP ILL BUS FPE SEGV CHLD SYS"
)
  .split(" ")
  .map((name) => `SIG${name}`) as [string, ...string[]];

export const Signal = z.enum(SIGNALS);

/** "64M", "1G" or a number of bytes; parsed to bytes. */
export const Memory = z
  .string()
  .regex(/^\d{1,12}[KMG]?$/, 'must be bytes such as "64M" or "1G"')
  .transform(
    (text) => Number.parseInt(text, 10) * ({ K: 1024, M: 1024 ** 2, G: 1024 ** 3 }[text.slice(-1)] ?? 1),
  );

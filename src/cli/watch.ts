import { setTimeout as delay } from "node:timers/promises";
import type { App } from "./app.ts";
import type { EXIT } from "./exit.ts";

/**
 * Asks again and again and shows what came: in place on a terminal, one document a line with `json`, else a new text at
 * each change. Ends with the code that `done` gives, or never.
 */
export async function watch<T>(
  app: App,
  options: {
    read: () => Promise<T>;
    show: (document: T) => string;
    json?: boolean | undefined;
    done?: (document: T) => number | null;
    every?: number;
  },
): Promise<number> {
  app.out.endWithReader();
  let before = "";
  for (;;) {
    const document = await options.read();
    const text = options.json ? JSON.stringify(document) : options.show(document);
    if (options.json && text !== before) app.out.json(document, true);
    else if (!options.json && (app.out.tty || text !== before)) app.out.redraw(text);
    before = text;
    const code = options.done?.(document) ?? null;
    if (code !== null) return code as (typeof EXIT)[keyof typeof EXIT];
    await delay(options.every ?? 500);
  }
}

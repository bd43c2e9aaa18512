import { setTimeout as delay } from "node:timers/promises";
import type { App } from "./app.ts";

/**
 * Asks again and again and shows what came: in place on a terminal, one document a line with `json`, elsewhere a new text
 * (`brief`, where that is given) at each change that is not only the passing of time. Ends with the code that `done` gives,
 * or never.
 */
export async function watch<T>(
  app: App,
  options: {
    read: () => Promise<T>;
    show: (document: T, now: number) => string;
    brief?: (document: T) => string;
    json?: boolean | undefined;
    done?: (document: T) => number | null;
    every?: number;
  },
): Promise<number> {
  app.out.endWithReader();
  let before = "";
  for (;;) {
    const document = await options.read();
    const code = options.done?.(document) ?? null;
    const key = options.json ? JSON.stringify(document) : options.show(document, 0);
    if (options.json && key !== before) app.out.json(document, true);
    else if (!options.json && (app.out.tty || key !== before)) {
      const brief = !app.out.tty && code === null ? options.brief : undefined;
      app.out.redraw(brief ? brief(document) : options.show(document, Date.now()));
    }
    before = key;
    if (code !== null) return code;
    await delay(options.every ?? 500);
  }
}

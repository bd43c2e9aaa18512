import { type FilledModule, fillModule } from "./fill.ts";
import type { CompiledModule } from "./module.ts";
import type { Filler } from "./node.ts";

/** Filled modules that one node alone has are remembered up to this many characters in all; beyond, they are filled again when needed. */
const OWN_BUDGET = 48 * 1024 * 1024;
/** Different values of one module that are remembered. */
const SHARED_LIMIT = 512;

interface Own {
  compiled: CompiledModule;
  values: readonly string[];
  filled: FilledModule;
  size: number;
}

/** Remembers filled modules: those that nodes share by their values, and each node's own. Bounded; never changes an answer. */
export class FillMemo implements Filler {
  #shared = new WeakMap<CompiledModule, Map<string, FilledModule>>();
  #own = new Map<string, Map<string, Own>>();
  #size = 0;

  fill(
    node: string,
    compiled: CompiledModule,
    values: readonly string[],
    foreign: (id: string) => string,
  ): FilledModule {
    if (compiled.foreign.length > 0) return fillModule(compiled, values, foreign);
    return compiled.ofNode
      ? this.#ownOf(node, compiled, values, foreign)
      : this.#sharedOf(compiled, values, foreign);
  }

  clear(): void {
    this.#shared = new WeakMap();
    this.#own.clear();
    this.#size = 0;
  }

  #sharedOf(
    compiled: CompiledModule,
    values: readonly string[],
    foreign: (id: string) => string,
  ): FilledModule {
    // Lengths keep the key unambiguous whatever bytes the values hold.
    const key = values.length === 0 ? "" : values.map((value) => `${value.length}:${value}`).join("");
    const known = this.#shared.get(compiled) ?? new Map<string, FilledModule>();
    if (known.size === 0) this.#shared.set(compiled, known);
    let filled = known.get(key);
    if (!filled) {
      filled = fillModule(compiled, values, foreign);
      if (known.size >= SHARED_LIMIT) known.clear();
      known.set(key, filled);
    }
    return filled;
  }

  #ownOf(
    node: string,
    compiled: CompiledModule,
    values: readonly string[],
    foreign: (id: string) => string,
  ): FilledModule {
    const known = this.#own.get(node) ?? new Map<string, Own>();
    const held = known.get(compiled.name);
    if (held && held.compiled === compiled && held.values.every((value, i) => value === values[i])) {
      return held.filled;
    }
    const filled = fillModule(compiled, values, foreign);
    const size = filled.text.length + 200;
    if (this.#size - (held?.size ?? 0) + size > OWN_BUDGET) return filled;
    if (known.size === 0) this.#own.set(node, known);
    known.set(compiled.name, { compiled, values, filled, size });
    this.#size += size - (held?.size ?? 0);
    return filled;
  }
}

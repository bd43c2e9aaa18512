import type { Catalogue, Problem } from "../catalogue/catalogue.ts";
import { type Composition, createComposer, type Resolution } from "./composer.ts";
import type { CompositionFacts, MeshView } from "./view.ts";

export { type Composer, type Composition, createComposer, type Resolution } from "./composer.ts";
export { ComposedNode } from "./node.ts";

/** Facts of nobody's mesh: seats get their offline placeholders, auto ports start at the range's first number. */
export const OFFLINE_FACTS: CompositionFacts = { seats: {}, ports: new Map() };

export function resolveView(catalogue: Catalogue): Resolution {
  return createComposer().resolve(catalogue);
}

/** A view composed: pure and deterministic; the same view and facts give the same bytes. */
export function composeView(view: MeshView, facts: CompositionFacts): Composition {
  return createComposer().compose(view, facts);
}

/** A catalogue composed. With problems, nothing of it may be sent. */
export function compose(
  catalogue: Catalogue,
  facts: CompositionFacts = OFFLINE_FACTS,
): Composition & { view: MeshView } {
  const composer = createComposer();
  const { view, problems } = composer.resolve(catalogue);
  const composition = composer.compose(view, facts);
  return { ...composition, view, problems: [...problems, ...composition.problems] };
}

/** All that is wrong with a catalogue, at a fraction of what composing it costs. */
export function problemsOf(catalogue: Catalogue, facts: CompositionFacts = OFFLINE_FACTS): Problem[] {
  return createComposer().problems(catalogue, facts);
}

import type { Catalogue, Problem, Refused } from "../catalogue/catalogue.ts";
import { sorted } from "../catalogue/problems.ts";
import { type Composition, createComposer } from "./composer.ts";
import { finishInSlices } from "./slices.ts";
import type { CompositionFacts, MeshView } from "./view.ts";

export { type Composer, type Composition, createComposer, type Resolution } from "./composer.ts";
export { ComposedNode } from "./node.ts";

/** Facts of nobody's mesh: seats get their offline placeholders, auto ports start at the range's first number. */
export const OFFLINE_FACTS: CompositionFacts = { seats: {}, ports: new Map() };

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

/** All problems of a refused catalogue: those of its files, and those that composing its sound ones shows. */
export async function allProblems(refused: Refused): Promise<Problem[]> {
  const more = await finishInSlices(createComposer().findingMore(refused));
  return sorted([...refused.problems, ...more]);
}

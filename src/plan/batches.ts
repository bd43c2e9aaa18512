import type { MeshFile } from "../catalogue/schema/mesh.ts";

/** `"30%"` of `total`, rounded up. */
export function shareOf(share: string, total: number): number {
  return Math.ceil((Number.parseInt(share, 10) * total) / 100);
}

/** True when `part` is above `share` ("30%") of `total`; no rounding. */
export function above(part: number, share: string, total: number): boolean {
  return part * 100 > Number.parseInt(share, 10) * total;
}

/**
 * Draws the batches that are still to come. Sizes are cumulative, so where the next batch ends depends only on how many
 * nodes are out already: a batch that adds nobody is passed over, and what the last one leaves is a batch of its own.
 * @param batches counts or shares ("10%") of the tier's nodes that are online
 * @param out how many nodes of the tier were sent already
 * @param waiting how many online nodes were not sent yet
 * @returns the sizes of the coming batches; their sum is `waiting`
 */
export function drawBatches(batches: MeshFile["rollout"]["batches"], out: number, waiting: number): number[] {
  const online = out + waiting;
  const sizes: number[] = [];
  let reached = out;
  for (const batch of [...batches, online]) {
    const target = Math.min(typeof batch === "number" ? batch : shareOf(batch, online), online);
    if (target <= reached) continue;
    sizes.push(target - reached);
    reached = target;
  }
  return sizes;
}

/** Exit codes of `mesh` (docs/operating.md). */
export const EXIT = { done: 0, failed: 1, usage: 2, notConverged: 3, unreachable: 4 } as const;
export type Exit = (typeof EXIT)[keyof typeof EXIT];

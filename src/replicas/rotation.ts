import type { Replica } from './replica.ts';

/**
 * The turns of one model: its candidates in configured order and one cursor, left after the replica that
 * was taken last. A replica that is skipped (drained, or refused this request) costs nobody a turn.
 */
export interface Rotation {
  readonly candidates: readonly Replica[];
  cursor: number;
}

/**
 * Finds the next candidate in turn that is neither drained nor tried, and moves the cursor behind it.
 * O(1) when the next in turn is eligible, O(n) at worst. Returns null when no candidate is eligible.
 */
export function takeTurn(rotation: Rotation, tried: ReadonlySet<Replica>): Replica | null {
  const { candidates } = rotation;
  for (let step = 0; step < candidates.length; step++) {
    const index = (rotation.cursor + step) % candidates.length;
    const replica = candidates[index];
    if (replica === undefined || replica.drain.drained || tried.has(replica)) continue;
    rotation.cursor = (index + 1) % candidates.length;
    return replica;
  }
  return null;
}

/**
 * The candidates of a model: the replicas known to serve it; else those whose list is not known yet.
 * `['*']` serves any name.
 */
export function candidatesOf(model: string, replicas: readonly Replica[]): readonly Replica[] {
  const serving = replicas.filter((r) => r.models?.includes(model) || isWildcard(r));
  return serving.length > 0 ? serving : replicas.filter((r) => r.models === null);
}

/** Whether the replica serves any model name. */
export function isWildcard(replica: Replica): boolean {
  return replica.models?.includes('*') ?? false;
}

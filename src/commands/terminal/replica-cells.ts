import { memberOf } from '../admin/client.ts';

/** Formats the first two cells of each table of replicas. `replica` is a replica of the admin API. */
export function toNameAndState(replica: unknown, nowEpochMs: number): readonly [name: string, state: string] {
  const name = String(toCell(memberOf(replica, 'name')));
  const [state, since] = toState(replica);
  return [name, typeof since === 'string' ? `${state} ${toAge(nowEpochMs - Date.parse(since))}` : state];
}

/** `since` is null for the normal state. */
function toState(replica: unknown): readonly [state: string, since: unknown] {
  if (memberOf(replica, 'drained') === true) {
    return [memberOf(replica, 'removing') === true ? 'removed' : 'drained', memberOf(replica, 'since')];
  }
  if (memberOf(replica, 'health') === 'failing') return ['failing', memberOf(replica, 'health_since')];
  return ['taking requests', null];
}

/** Formats a value of the admin API as a cell: `-` if it is unknown. */
export function toCell(value: unknown): string | number {
  if (typeof value === 'string' || typeof value === 'number') return value;
  return Array.isArray(value) ? value.join(', ') : '-';
}

/** Formats a duration in the largest unit that fits at least once: `45s`, `12m`, `3h`, `2d`. */
export function toAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

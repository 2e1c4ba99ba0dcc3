import { memberOf } from '../admin/client.ts';

/** The cells that tables of replicas have in common. `replica` is one of the admin API. */
export function toNameAndState(replica: unknown, nowEpochMs: number): readonly [name: string, state: string] {
  const name = String(toCell(memberOf(replica, 'name')));
  const [state, since] = toState(replica);
  return [name, typeof since === 'string' ? `${state} ${toAge(nowEpochMs - Date.parse(since))}` : state];
}

/** In a word, and since when where that is of interest. */
function toState(replica: unknown): readonly [state: string, since: unknown] {
  if (memberOf(replica, 'drained') === true) {
    return [memberOf(replica, 'removing') === true ? 'removed' : 'drained', memberOf(replica, 'since')];
  }
  if (memberOf(replica, 'health') === 'failing') return ['failing', memberOf(replica, 'health_since')];
  return ['taking requests', null];
}

/** A value of the admin API in a cell; `-` for what is not known. */
export function toCell(value: unknown): string | number {
  if (typeof value === 'string' || typeof value === 'number') return value;
  return Array.isArray(value) ? value.join(', ') : '-';
}

/** How long ago, in the largest unit that counts at least one: `45s`, `12m`, `3h`, `2d`. */
export function toAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

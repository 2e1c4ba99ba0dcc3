import { memberOf } from '#base/parsed';
import { type Cell, type Column, type Style, toOneLine } from '#cli/terminal';
import { HEALTH_TEXTS } from '#replicas/health-state';
import { REASON_TEXTS } from '#replicas/reachability';

/** The first two columns of each table of replicas. */
export const NAME_AND_STATE: readonly Column[] = [
  { head: 'NAME', least: 20 },
  // The state and its age come first; there is room for the beginning of the reason.
  { head: 'STATE', least: 26, cut: 'end' },
];

/** Formats the cells of NAME_AND_STATE. `replica` is a replica of the admin API. */
export function toNameAndState(replica: unknown, nowEpochMs: number): readonly [name: string, state: Cell] {
  const name = String(toCell(memberOf(replica, 'name')));
  const { word, since, why } = toState(replica);
  const age = typeof since === 'string' ? ` ${toAge(nowEpochMs - Date.parse(since))}` : '';
  const whys = [why, toSilentText(memberOf(replica, 'silent_streams'))].filter((each) => each !== null);
  const text = word + age + (whys.length === 0 ? '' : ` (${whys.join(', ')})`);
  return [name, { text, style: STATE_STYLES[word] }];
}

/** The state of a replica in one or a few words. */
export type StateWord = keyof typeof STATE_STYLES;

/** The state that an operator must know of first. */
export function stateWordOf(replica: unknown): StateWord {
  return toState(replica).word;
}

/** How each state is emphasized. */
const STATE_STYLES = {
  unreachable: 'red',
  failing: 'red',
  loading: 'yellow',
  draining: 'yellow',
  'not seen yet': 'yellow',
  drained: 'dim',
  removed: 'dim',
  serving: null,
  shadow: 'dim',
} as const satisfies Readonly<Record<string, Style | null>>;

/** `since`: RFC 3339, or anything else. `why`: a text, or null. */
interface ShownState {
  readonly word: StateWord;
  readonly since: unknown;
  readonly why: string | null;
}

/** The dashboard uses the same words, but for a removed replica `draining`. */
function toState(replica: unknown): ShownState {
  const isDrained = memberOf(replica, 'drained') === true;
  const shadow = memberOf(replica, 'shadow');
  const shadowSince = memberOf(shadow, 'since');
  if (isDrained) {
    const isDraining = ['inflight', 'background'].some((work) => Number(memberOf(replica, work) ?? 0) > 0);
    const since = memberOf(replica, 'since');
    if (memberOf(replica, 'removing') === true) return { word: 'removed', since, why: null };
    const why = typeof shadowSince === 'string' ? 'shadow' : null;
    return { word: isDraining ? 'draining' : 'drained', since, why };
  }
  const reachability = memberOf(replica, 'reachability');
  if (reachability === 'unreachable' || reachability === 'loading') {
    const why =
      reachability === 'unreachable' ? toReasonText(memberOf(replica, 'reachability_reason')) : null;
    return { word: reachability, since: memberOf(replica, 'reachability_since'), why };
  }
  if (memberOf(replica, 'health') === 'failing') {
    const why = toHealthText(memberOf(replica, 'health_reasons'));
    return { word: 'failing', since: memberOf(replica, 'health_since'), why };
  }
  if (reachability === 'unknown') return { word: 'not seen yet', since: null, why: null };
  if (typeof shadow === 'object' && shadow !== null) {
    const requests = memberOf(shadow, 'requests');
    const why = typeof requests === 'number' ? `copies of ${Math.round(requests * 100)} %` : null;
    return { word: 'shadow', since: shadowSince, why };
  }
  const share = memberOf(memberOf(replica, 'ramp'), 'share');
  const why = typeof share === 'number' ? `ramp ${Math.round(share * 100)} %` : null;
  return { word: 'serving', since: null, why };
}

/** How many of the streams are silent, and for how long the oldest is; null if none is. */
function toSilentText(streams: unknown): string | null {
  const [count, running, oldestMs] = ['count', 'running', 'oldest_ms'].map((name) =>
    Number(memberOf(streams, name) ?? 0),
  );
  if (!count) return null;
  return `${count} of ${running} streams silent for ${toAge(oldestMs ?? 0)}`;
}

const TEXTS: ReadonlyMap<string, string> = new Map(Object.entries({ ...REASON_TEXTS, ...HEALTH_TEXTS }));

/** The text for `health_reasons`; null if there are none. */
function toHealthText(reasons: unknown): string | null {
  if (!Array.isArray(reasons) || reasons.length === 0) return null;
  return reasons.flatMap((reason) => toReasonText(reason) ?? []).join(', ');
}

/** The text for a `reachability_reason`, or one of `health_reasons`; null if there is none. */
export function toReasonText(reason: unknown): string | null {
  if (typeof reason !== 'string') return null;
  // A later gateway may have further reasons.
  return TEXTS.get(reason) ?? toOneLine(reason.replaceAll('_', ' '));
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

import type { ExportStats } from '#otel/queue/export-stats.ts';

/** How the collector takes records, as far as the counters tell, and since when (RFC 3339). */
export interface CollectorState {
  /** `idle`: nothing was sent yet. `refusing`: it answers, and says no for good. `failing`: calls fail. */
  readonly kind: 'idle' | 'taking' | 'refusing' | 'failing';
  readonly since: string;
  /** Calls that failed since then. */
  readonly failedCalls: number;
}

type Counters = Pick<ExportStats, 'exported' | 'rejected' | 'failedCalls'>;

/** The state after the counters went from `before` to `now`. Records taken outweigh calls that failed. */
export function nextCollectorState(
  state: CollectorState,
  { before, now, time }: { readonly before: Counters; readonly now: Counters; readonly time: string },
): CollectorState {
  const kind = toKind(before, now) ?? state.kind;
  const failedCalls = now.failedCalls - before.failedCalls;
  return kind === state.kind
    ? { ...state, failedCalls: state.failedCalls + failedCalls }
    : { kind, since: time, failedCalls };
}

/** What the counters say of the time between; null if nothing was tried. */
function toKind(before: Counters, now: Counters): CollectorState['kind'] | null {
  if (now.exported > before.exported) return 'taking';
  if (now.rejected > before.rejected) return 'refusing';
  return now.failedCalls > before.failedCalls ? 'failing' : null;
}

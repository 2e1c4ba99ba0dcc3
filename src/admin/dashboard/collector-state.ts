import type { ExportStats } from '#otel/queue';

/** Whether the collector accepts records, derived from the export counters, and since when (RFC 3339). */
export interface CollectorState {
  /** `idle`: nothing was sent yet. `refusing`: it rejects records permanently. `failing`: export calls fail. */
  readonly kind: 'idle' | 'taking' | 'refusing' | 'failing';
  readonly since: string;
  /** Export calls that have failed since then. */
  readonly failedCalls: number;
}

type Counters = Pick<ExportStats, 'exported' | 'rejected' | 'failedCalls'>;

/** The state after the counters changed from `before` to `now`. Accepted records outweigh failed calls. */
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

/** The state between two counts; null if no export was tried. */
function toKind(before: Counters, now: Counters): CollectorState['kind'] | null {
  if (now.exported > before.exported) return 'taking';
  if (now.rejected > before.rejected) return 'refusing';
  return now.failedCalls > before.failedCalls ? 'failing' : null;
}

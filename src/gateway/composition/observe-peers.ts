import { toObservation } from '#admin';
import { REPLICA_FAULTS, toOutcome } from '#otel/outcome';
import type { EndedRecord } from '#otel/queue';
import type { RequestRecord } from '#otel/record/registry';
import type { ReplicaControl } from '#replicas/control';

/** Creates the function that passes to a watch what each request shows of the replicas that were tried for it. */
export function createPeerObserver(watch: Pick<ReplicaControl, 'observe'>): (ended: EndedRecord) => void {
  return ({ record }) => {
    const observation = toObservation(record);
    if (observation === null) return;
    const { attempts = 1, queue_ms = 0, failed_attempts = [] } = record;
    const failed = attempts > 1 ? failed_attempts : [];
    for (const { replica, status } of failed) {
      if (status !== null && status >= 500) watch.observe({ ...observation, replica, outcome: 'error' });
    }
    // What went before the last attempt is not its replica's.
    const beforeMs = failed.reduce((sum, { duration_ms }) => sum + duration_ms, queue_ms);
    const { ttftMs, e2eMs, outcome } = observation;
    const isOthers = outcome === 'error' && !isOwnFailure(record);
    watch.observe({
      ...observation,
      ttftMs: ttftMs === null ? null : Math.max(0, ttftMs - beforeMs),
      e2eMs: Math.max(0, e2eMs - beforeMs),
      outcome: isOthers ? 'unclear' : outcome,
    });
  };
}

/**
 * Whether the replica failed the request, with a status from 500 or in the middle of its response. A 4xx status says
 * nothing of the replica: a client that sends wrong requests could choose the replica that they fail on.
 */
function isOwnFailure(record: Readonly<RequestRecord>): boolean {
  const { error_type } = record;
  return toOutcome(record) === 'error' && (error_type === undefined || REPLICA_FAULTS.has(error_type));
}

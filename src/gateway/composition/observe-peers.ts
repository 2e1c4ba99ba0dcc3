import { type OutcomeReading, type RingCollaborators, toObservations } from '#comparisons';
import type { EndedRecord } from '#otel/queue';
import type { ReplicaControl } from '#replicas/control';

/**
 * A 4xx status says nothing of a replica: a client that sends wrong requests could choose the replica that they fail on.
 * Who watches the connections judges those that are refused, and a replica that loads its model is known to.
 */
const READING: OutcomeReading = {
  success: 'ok',
  error: 'error',
  not_connected: null,
  loading: null,
  client_error: 'unclear',
  canceled: 'unclear',
  repeated: null,
  other: 'unclear',
};

/** Creates the function that passes to a watch what each attempt shows of the replica that was tried. */
export function createPeerObserver(
  watch: Pick<ReplicaControl, 'observe'>,
  isOfPresent: RingCollaborators['isOfPresent'],
): (ended: EndedRecord) => void {
  return ({ record }) => {
    const observations = toObservations(record, READING);
    // No attempt follows one that a time-out has ended.
    const hung = record.error_type === 'upstream_timeout' ? observations.at(-1) : undefined;
    for (const observation of observations.filter(isOfPresent)) {
      const isHung = observation === hung;
      const isOver = isHung && (record.stream || observation.e2eMs > MAX_HUNG_MS);
      watch.observe(isOver ? { ...observation, outcome: 'unclear' } : observation, isHung);
    }
  };
}

/**
 * A time-out shows what was wrong when the request began to hang, which may be over. A stream does not count, because it
 * was judged when it fell silent.
 */
const MAX_HUNG_MS = 15_000;

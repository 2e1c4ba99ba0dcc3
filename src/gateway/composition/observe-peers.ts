import { type OutcomeReading, toObservations } from '#comparisons';
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
export function createPeerObserver(watch: Pick<ReplicaControl, 'observe'>): (ended: EndedRecord) => void {
  return ({ record }) => {
    for (const observation of toObservations(record, READING)) watch.observe(observation);
  };
}

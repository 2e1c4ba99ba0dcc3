import type { Logger } from 'pino';
import { roundTo3 } from '#admin';
import type { EndedRecord } from '#otel/queue';
import type { RequestRecord } from '#otel/record/registry';

/** Takes the record of a request that has ended. */
export type EndedObserver = (ended: EndedRecord) => void;

/** Passes each record to the observers, which may change, and to the access log if that is on. */
export function createRecordObserver(
  observers: ReadonlySet<EndedObserver>,
  { log, isLogged }: { readonly log: Logger; readonly isLogged: () => boolean },
): EndedObserver {
  return (ended) => {
    const { record } = ended;
    try {
      for (const observe of observers) observe(ended);
      if (isLogged()) log.info(toAccessLogFields(record), 'request');
    } catch (error) {
      // A defect in an observer costs no request and no record. Its message is not logged: it may quote a request.
      log.error({ error: error instanceof Error ? error.name : typeof error }, 'record handling failed');
    }
  };
}

function toAccessLogFields(record: Readonly<RequestRecord>): object {
  const { request_id, trace_id, endpoint, replica, model, tenant, status, error_type, e2e_ms } = record;
  // Microseconds; the record has all digits.
  const duration = { e2e_ms: roundTo3(e2e_ms) };
  return { request_id, trace_id, endpoint, replica, model, tenant, status, error_type, ...duration };
}

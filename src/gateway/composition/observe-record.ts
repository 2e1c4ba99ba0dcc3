import type { Logger } from 'pino';
import { roundTo3 } from '#admin';
import type { EndedRecord } from '#otel/queue';
import type { RequestRecord } from '#otel/record/registry';

/** Takes the record of a request that has ended. */
export type EndedObserver = (ended: EndedRecord) => void;

/** An observer whose defects cost no request and no record, and keep no other from it. */
export function guarded(observe: EndedObserver, log: Logger): EndedObserver {
  return (ended) => {
    try {
      observe(ended);
    } catch (error) {
      // Its message is not logged: it may quote a request.
      log.error({ error: error instanceof Error ? error.name : typeof error }, 'record handling failed');
    }
  };
}

/** What the access log says of a request. */
export function toAccessLogFields(record: Readonly<RequestRecord>): object {
  const { request_id, trace_id, endpoint, replica, model, tenant, status, error_type, refused_by } = record;
  // Microseconds; the record has all digits.
  const e2e_ms = roundTo3(record.e2e_ms);
  return { request_id, trace_id, endpoint, replica, model, tenant, status, error_type, refused_by, e2e_ms };
}

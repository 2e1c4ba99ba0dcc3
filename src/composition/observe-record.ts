import type { Logger } from 'pino';
import type { RequestRecord } from '#otel/encode/request-record.ts';
import { roundTo3 } from '../admin/shown-record.ts';

/** Takes one record. */
export type RecordObserver = (record: Readonly<RequestRecord>) => void;

/** Passes each record to the observers, and to the access log if that is on. */
export function createRecordObserver(
  observers: readonly RecordObserver[],
  { log, isLogged }: { readonly log: Logger; readonly isLogged: () => boolean },
): RecordObserver {
  return (record) => {
    try {
      for (const observe of observers) observe(record);
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

import type { Log } from '#otel/base';

/** The steps of one request: each line names it. */
export function createStepLog(log: Log<'debug'>, requestId: string): Log<'debug'> {
  return { debug: (fields, step) => log.debug({ request_id: requestId, ...fields }, step) };
}

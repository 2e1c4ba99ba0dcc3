import type { Log } from '#otel/base';

/**
 * Says what is done with a request, step by step: each line names it. The fields hold names of the configuration, codes and
 * numbers: nothing that a client or a replica has sent.
 */
export function createStepLog(log: Log<'debug'>, requestId: string): Log<'debug'> {
  return { debug: (fields, step) => log.debug({ request_id: requestId, ...fields }, step) };
}

/**
 * Says what is done with a request, step by step. The fields hold names of the configuration, codes and numbers: nothing
 * that a client or a replica has sent.
 */
export interface StepLog {
  debug(fields: object, step: string): void;
}

/** The steps of one request: each line names it. */
export function createStepLog(log: StepLog, requestId: string): StepLog {
  return { debug: (fields, step) => log.debug({ request_id: requestId, ...fields }, step) };
}

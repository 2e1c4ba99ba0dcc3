/*
 * The names and types of everything that spans say: the fields of a record, the events and spans beside it, the
 * semantic conventions. `npm run generate` makes them from the YAML files here.
 *
 * It never knows how anything is encoded.
 * Begin with record.yaml, then request-record.ts.
 */

export {
  ADMIN_ACTION,
  FAILED_ATTEMPT,
  LEDGER,
  RECORD_FIELDS,
  ROLLOUT_STEP,
  SCOPE,
  SEMCONV,
  SHADOW,
} from './attribute-names.ts';
export type { FailedAttempt } from './failed-attempt.ts';
export { OPERATIONS, providerOf } from './operations.ts';
export type { RequestRecord } from './request-record.ts';

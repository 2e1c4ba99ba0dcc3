/*
 * What clients and tenants may use: requests at the same time, requests and tokens per minute, counted by all threads
 * together.
 *
 * It never knows keys, requests or records.
 * Begin with admission.ts, then client-limit-table.ts; limit-rows.ts says whose use a row counts.
 * budget.ts prints what is left for the fields of an answer; the words of a refusal are in src/proxy/failure.ts.
 */

export { type Admission, ClientLimiter, type CountedLimits, limitsOf } from './admission.ts';
export {
  allocateClientLimits,
  ClientLimitTable,
  idleShareOf,
  MAX_LIMITED_CLIENTS,
  ROW_KNOWN_MS,
} from './client-limit-table.ts';
export { LimitRows, type TenantKind } from './limit-rows.ts';
export { TenantLimits } from './tenant-limits.ts';

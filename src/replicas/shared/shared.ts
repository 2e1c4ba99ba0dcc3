/*
 * Facts about replicas that all threads must know at once, in shared memory: drained, in flight, turns, ramps,
 * reachability, silence, GPU time, stored responses, waiting requests.
 *
 * It never knows who reads or writes them.
 * Begin with shared-state.ts, which has the tables of one gateway.
 */

export type { GpuTime, GpuTimeTable } from './gpu-time-table.ts';
export type { Health, HealthSettings, HealthTable } from './health-table.ts';
export { hasTakenBack } from './ramp.ts';
export type { Ramp, RampProgress, RampTable } from './ramp-table.ts';
export {
  allocateSharedState,
  CURSORS,
  MAX_CURSORS,
  MAX_REPLICAS,
  SharedState,
  type SharedStateMemory,
} from './shared-state.ts';
export { SILENT_AFTER, type SilenceLimits } from './silence-limits.ts';
export { type Silence, type SilenceTable, type Streams, toSampleMs } from './silence-table.ts';
export {
  isCalledAs,
  mayRead,
  PRINTED_CHARS,
  parseResponse,
  printResponse,
  type ResponseOrigin,
  type StoredResponse,
} from './stored-response.ts';
export { allocateStoredResponses, MAX_AGE_SECONDS, StoredResponses } from './stored-responses.ts';
export { isBefore, type WaitTable } from './wait-table.ts';

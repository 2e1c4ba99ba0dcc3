/*
 * Stored responses: which replica has which, who may read them. All threads of a gateway share the table, and gateways of
 * a fleet exchange its rows.
 *
 * It never knows who asks, nor what a response says.
 * Begin with stored-response.ts, then response-table.ts.
 */

export type { ResponseReader } from './response-reader.ts';
export { allocateStoredResponses, MAX_AGE_SECONDS, StoredResponses } from './response-table.ts';
export {
  isCalledAs,
  mayRead,
  PRINTED_CHARS,
  parseResponse,
  printResponse,
  type ResponseOrigin,
  type StoredResponse,
} from './stored-response.ts';

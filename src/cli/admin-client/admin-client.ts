/*
 * The client of the admin API: finds the gateway that is meant, sends the token, and turns what it refuses into
 * messages.
 *
 * It never knows what a command does with an answer.
 * Begin with client.ts.
 */

export {
  type AdminClient,
  openAdmin,
  openGateways,
  RefusedError,
  type SeveralGateways,
  toReason,
  UnreachableError,
} from './client.ts';
export { callDrain } from './drain-call.ts';
export { findClientListener, type GatewayOptions } from './find-gateway.ts';
export { callVerdict } from './verdict-call.ts';

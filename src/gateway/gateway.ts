/*
 * A whole gateway: its parts, the order in which they start and stop, its threads, and reloads.
 *
 * It decides nothing about a request: rooms do, and are joined here.
 * Begin with parts.ts, the stages of a start, then create-gateway.ts and compose-gateway.ts. composition/ has one file
 * for each group of parts, gateway-events.ts for what they hear of each other, config-in-effect.ts for what a reload
 * concerns; serving/ is what each thread runs (proxy-policy.ts: whom it trusts); conditions/ has a file for each kind of what can be wrong.
 */

export { checkConnections, type SecuredConfig } from './check-connections/check-connections.ts';
export { checkSettings } from './check-connections/check-settings.ts';
export type { ConnectionCheck } from './check-connections/connection-check.ts';
export type { ServingGateway } from './compose-gateway.ts';
export { createGateway, type Gateway } from './create-gateway.ts';
export type { CloseResult } from './parts.ts';

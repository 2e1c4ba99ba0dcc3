/*
 * A whole gateway: its parts, the order in which they start and stop, its threads, and reloads.
 *
 * It decides nothing about a request: rooms do, and are joined here.
 * Begin with parts.ts, create-gateway.ts and compose-gateway.ts; serving/ is what each thread runs.
 */

export { checkConnections, type SecuredConfig } from './check-connections/check-connections.ts';
export { checkSettings } from './check-connections/check-settings.ts';
export type { ConnectionCheck } from './check-connections/connection-check.ts';
export type { ServingGateway } from './compose-gateway.ts';
export { createGateway, type Gateway } from './create-gateway.ts';
export type { CloseResult } from './parts.ts';

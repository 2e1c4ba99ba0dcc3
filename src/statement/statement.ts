/*
 * Statements of what a tenant has used in a month: made of the records that gateways know, signed, and proven again with
 * the records that were exported.
 *
 * It never knows a gateway or a network.
 * Begin with compose-statement.ts (what a statement says), statement-key.ts (what is signed) and
 * verify/verify-statement.ts.
 */

export { toMonth } from './calendar.ts';
export { composeStatement, type GatewayFacts, SameRecordsError } from './compose-statement.ts';
export { loadStatementKey } from './load-statement-key.ts';
export { createStatementKey, readStatementKey, type StatementKey, signStatement } from './statement-key.ts';
export type { Statement } from './statement-schema.ts';
export { type StatementReport, verifyStatement } from './verify/verify-statement.ts';

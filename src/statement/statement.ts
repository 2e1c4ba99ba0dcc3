/*
 * Statements of what a tenant has used in a month: made of the records that gateways know, signed, and proven again with
 * the records that were exported.
 *
 * It never knows a gateway or a network.
 * Begin with compose-statement.ts (what a statement says), statement-key.ts (what is signed) and
 * verify/verify-statement.ts.
 */

import { UnusableSettingError } from '#base';
import { readSecretFile, SecretError } from '#config/secrets';
import { readStatementKey, type StatementKey } from './statement-key.ts';

export { toMonth } from './calendar.ts';
export { composeStatement, type GatewayFacts, SameRecordsError } from './compose-statement.ts';
export { createStatementKey, readStatementKey, type StatementKey, signStatement } from './statement-key.ts';
export type { Statement } from './statement-schema.ts';
export { type StatementReport, verifyStatement } from './verify/verify-statement.ts';

/** Reads the key in a file. `source` names the file in messages. Rejects with an UnusableSettingError of one line. */
export async function loadStatementKey(path: string, source: string): Promise<StatementKey> {
  const text = await readSecretFile(path, source).catch((error: unknown) => {
    throw error instanceof SecretError ? new UnusableSettingError(error.message, error) : error;
  });
  const key = readStatementKey(text);
  if (key === null) {
    throw new UnusableSettingError(
      `${source} holds no Ed25519 key: gateway key create --statement makes one`,
    );
  }
  return key;
}

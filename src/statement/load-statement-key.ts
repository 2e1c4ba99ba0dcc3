import { UnusableSettingError } from '#base';
import { readSecretFile, SecretError } from '#config/secrets';
import { readStatementKey, type StatementKey } from './statement-key.ts';

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

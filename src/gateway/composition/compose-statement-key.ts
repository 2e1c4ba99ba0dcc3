import type { Config } from '#config';
import { loadStatementKey } from '#statement';
import type { ConfigInEffect } from './config-in-effect.ts';

/** The public key of statements, as the configuration in effect names it; null: it names none. */
export async function composeStatementKey(inEffect: ConfigInEffect): Promise<() => string | null> {
  let current = await readPublicKey(inEffect.config);
  inEffect.onChange(async (next) => {
    const read = await readPublicKey(next);
    return async (changedFiles) => {
      if (read !== current) changedFiles.add('statement_key');
      current = read;
    };
  });
  return () => current;
}

/** Rejects with an UnusableSettingError. */
async function readPublicKey({ statementKey }: Config): Promise<string | null> {
  if (statementKey === null) return null;
  return (await loadStatementKey(statementKey, `statement_key: ${statementKey}`)).publicKey;
}

import { JwksError, readJwks, toShownSource } from '#access/jwt';
import { type ConnectionCheck, explain, runCheck } from './connection-check.ts';

/** Reads the keys of tokens, as the gateway does. `source`: a URL, or a path that `checkSettings` has read. */
export function checkJwks(source: string): Promise<ConnectionCheck> {
  const target = toShownSource(source);
  return runCheck('jwks', 'jwt.jwks', async () => {
    try {
      const { keys } = await readJwks(source);
      const result = `ok, ${keys.length} ${keys.length === 1 ? 'key' : 'keys'}`;
      return { target, isOk: true, result, advice: null };
    } catch (error) {
      if (!(error instanceof JwksError)) throw error;
      const other =
        'it must answer with a JSON Web Key Set: see jwks_uri in /.well-known/openid-configuration of the issuer';
      return { target, isOk: false, ...explain(error.message, [[/^/, error.message, other]]) };
    }
  });
}

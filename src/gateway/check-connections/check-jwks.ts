import { isRemote, JwksError, readJwks, toShownSource } from '#access';
import { type ConnectionCheck, runCheck } from './connection-check.ts';

/** Reads the keys of tokens, as the gateway does. `source`: a URL, or a path. */
export function checkJwks(source: string): Promise<ConnectionCheck> {
  const target = toShownSource(source);
  return runCheck('jwks', 'jwt.jwks', async () => {
    try {
      const { keys } = await readJwks(source);
      return {
        target,
        isOk: true,
        result: `ok, ${keys.length} ${keys.length === 1 ? 'key' : 'keys'}`,
        advice: null,
      };
    } catch (error) {
      if (!(error instanceof JwksError)) throw error;
      const advice = isRemote(source)
        ? 'it must answer with a JSON Web Key Set: see jwks_uri in /.well-known/openid-configuration of the issuer'
        : 'it must be a JSON Web Key Set';
      return { target, isOk: false, result: error.message, advice };
    }
  });
}

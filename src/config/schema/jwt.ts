import { z } from 'zod';
import { parseUrl } from '#config/addresses';
import { clientLimits } from './clients.ts';
import { listOf, oneOf, oneOrMore } from './codecs.ts';
import { facts, section } from './keys.ts';
import { oneLine } from './names.ts';

/** Signatures with a key pair (RFC 7518 3.1, RFC 8037 3.1): who can verify them cannot make them. */
const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
] as [string, ...string[]];

const claim = () => oneLine('the name of a claim');

const audienceTitle = 'a text of one line, or a list of them';
const jwksTitle =
  'an https:// or http:// URL without credentials and fragment, or a path relative to the directory of this file';

/** Tokens of an issuer as API keys: `jwt`. */
export const jwt = section({
  issuer: oneLine().describe('What `iss` must be, character by character.'),
  audience: oneOrMore(() => oneLine(audienceTitle), audienceTitle).describe(
    'What `aud` must be or contain; one of a list.',
  ),
  jwks: z
    .string({ error: jwksTitle })
    .refine(isSource, { error: jwksTitle })
    .meta({ title: jwksTitle })
    .register(facts, { holds: 'path' })
    .describe('The public keys of the issuer (JSON Web Key Set), read again automatically.'),
  algorithms: listOf(oneOf(algorithms), `a list of ${algorithms.join(', ')}`, { min: 1 })
    .prefault([...algorithms])
    .describe('The signatures accepted. Tokens that are unsigned or signed with a shared secret never are.'),
  tenant_claim: claim().describe(
    'The claim with the tenant. A token without it is refused. A dot leads into a claim: `realm_access.tenant`.',
  ),
  feature_claim: claim()
    .optional()
    .describe("The claim with the feature. Default: the client's own header (`headers.feature`)."),
  models_claim: claim()
    .optional()
    .describe(
      'The claim with the models allowed; `*` allows all, a token without the claim none. Default: all.',
    ),
  client_claim: claim()
    .optional()
    .describe('The claim recorded as `gateway.client`, such as `azp` or `sub`. Default: none.'),
  ...clientLimits,
});

function isSource(text: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:/i.test(text)) return text !== '';
  const url = parseUrl(text);
  return (
    url !== null &&
    /^https?:\/\//i.test(text) &&
    url.username === '' &&
    url.password === '' &&
    url.hash === ''
  );
}

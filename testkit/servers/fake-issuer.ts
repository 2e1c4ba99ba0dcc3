import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { closeServer, listen } from './local-server.ts';

/** What tokens of tests are issued for. */
export const AUDIENCE = 'spangate';

/** A key pair of an issuer. */
export interface IssuerKey {
  readonly kid: string;
  readonly alg: string;
  readonly pair: GenerateKeyPairResult;
  /** The public part, as it stands in a key set. */
  readonly jwk: object;
}

/** Makes a key pair. */
export async function makeKey(kid: string, alg = 'ES256'): Promise<IssuerKey> {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, pair, jwk: { ...(await exportJWK(pair.publicKey)), kid, alg, use: 'sig' } };
}

/** An issuer of tokens with a real HTTP server for its keys. */
export interface FakeIssuer extends AsyncDisposable {
  /** The `iss` of its tokens. */
  readonly issuer: string;
  readonly jwksUrl: string;
  /** How often its keys were asked for. */
  readonly requestCount: number;
  /** Resolves when its keys were asked for that often. */
  untilRequests(count: number): Promise<void>;
  /** Answers with these keys from now on. */
  publish(...keys: readonly IssuerKey[]): void;
  /** Answers so from now on. */
  answerWith(listener: (response: ServerResponse) => void): void;
  /** Signs a token with this key: valid for an hour, for the tenant `acme`, unless the claims say otherwise. */
  issue(key: IssuerKey, claims?: Readonly<Record<string, unknown>>, header?: object): Promise<string>;
}

/** Starts an issuer that has published these keys. */
export async function startIssuer(...keys: readonly IssuerKey[]): Promise<FakeIssuer> {
  let requestCount = 0;
  let answer: (response: ServerResponse) => void = () => undefined;
  const waiting = new Set<{ readonly count: number; readonly resolve: () => void }>();
  const listener: RequestListener = (_, response) => {
    requestCount += 1;
    for (const each of waiting) if (each.count <= requestCount) each.resolve();
    answer(response);
  };
  const server = createServer(listener);
  const issuer = `http://127.0.0.1:${await listen(server)}`;
  const started: FakeIssuer = {
    issuer,
    jwksUrl: `${issuer}/jwks.json`,
    get requestCount() {
      return requestCount;
    },
    async untilRequests(count) {
      if (requestCount >= count) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add({ count, resolve });
      await promise;
    },
    publish(...published) {
      const text = JSON.stringify({ keys: published.map(({ jwk }) => jwk) });
      answer = (response) => response.setHeader('Content-Type', 'application/json').end(text);
    },
    answerWith(next) {
      answer = next;
    },
    async issue({ kid, alg, pair }, claims = {}, header = {}) {
      const nowS = Math.floor(Date.now() / 1000);
      const payload: JWTPayload = {
        iss: issuer,
        aud: AUDIENCE,
        exp: nowS + 3600,
        iat: nowS,
        tenant: 'acme',
        ...claims,
      };
      return await new SignJWT(payload).setProtectedHeader({ alg, kid, ...header }).sign(pair.privateKey);
    },
    [Symbol.asyncDispose]: () => closeServer(server),
  };
  started.publish(...keys);
  return started;
}

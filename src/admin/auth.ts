import { createHash, timingSafeEqual } from 'node:crypto';

/** What a call may do: go on, or be refused with a status. */
export type AuthDecision = 'allowed' | 'unauthorized' | 'admin_disabled';

/**
 * Creates the check of `Authorization: Bearer <token>`. Without a configured token every call is refused.
 * The comparison takes the same time wherever the tokens differ: digests of equal length are compared.
 */
export function createAuth(token: string | undefined): (authorization: string | undefined) => AuthDecision {
  if (token === undefined || token === '') return () => 'admin_disabled';
  const expected = digest(token);
  return (authorization) => {
    const given = /^Bearer +(.+)$/i.exec(authorization ?? '')?.[1];
    if (given === undefined) return 'unauthorized';
    return timingSafeEqual(digest(given), expected) ? 'allowed' : 'unauthorized';
  };
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

import { describe, expect, test } from 'vitest';
import { toConnectionReason } from '../../../src/replicas/reachability/reachability-state.ts';

const withCode = (code: string) => Object.assign(new Error('a text that says nothing'), { code });

describe('a failed connection', () => {
  test.each([
    ['ECONNREFUSED', 'connection_refused'],
    ['ENOTFOUND', 'name_not_resolved'],
    ['EAI_AGAIN', 'name_not_resolved'],
    ['UND_ERR_CONNECT_TIMEOUT', 'connect_timeout'],
    ['EHOSTUNREACH', 'connect_timeout'],
    ['ECONNRESET', 'connection_reset'],
    ['UND_ERR_SOCKET', 'connection_reset'],
    ['HPE_INVALID_CONSTANT', 'not_http'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_failed'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'tls_failed'],
    ['CERT_HAS_EXPIRED', 'tls_failed'],
  ] as const)('with the code %s means %s, over TLS', (code, reason) => {
    expect(toConnectionReason(withCode(code), true)).toBe(reason);
  });

  test('without a code that is known is one that broke, or failed TLS', () => {
    expect(toConnectionReason(new Error('x'), false)).toBe('connection_reset');
    expect(toConnectionReason(null, false)).toBe('connection_reset');
    expect(toConnectionReason(new Error('x'), true)).toBe('tls_failed');
  });
});

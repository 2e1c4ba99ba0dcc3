import { describe, expect, test } from 'vitest';
import { createHostCheck } from '../../../src/admin/access/host-check.ts';

const OWN_WORDS = [
  'evil.example',
  'EVIL.example:9090',
  'g',
  'localhost.evil.example',
  '127.0.0.1.nip.io',
  '0x7f.1',
  'localhost%.evil.example',
];

describe('an admin API on loopback', () => {
  const isAllowed = createHostCheck({ listenHost: '127.0.0.1', allowedHosts: null });

  test.each([
    '127.0.0.1:9090',
    '10.1.2.3',
    '[::1]:9090',
    '[fe80::1%25eth0]:80',
    'localhost',
    'LOCALHOST.:9090',
    'gw.localhost:1',
    '',
    undefined,
  ])('answers Host %s, which no other site can have', (host) => expect(isAllowed(host)).toBe(true));

  test.each(OWN_WORDS)('refuses Host %s, whose address somebody else decides', (host) =>
    expect(isAllowed(host)).toBe(false),
  );
});

test('an admin API that listens on a name answers to that name', () => {
  const isAllowed = createHostCheck({ listenHost: 'gw.internal', allowedHosts: [] });
  expect([isAllowed('gw.internal:9090'), isAllowed('other.internal')]).toEqual([true, false]);
});

test('an admin API beyond loopback answers every name as long as none is configured', () => {
  const isAllowed = createHostCheck({ listenHost: '0.0.0.0', allowedHosts: null });
  expect(OWN_WORDS.map(isAllowed)).not.toContain(false);
});

test('configured names are allowed, with any port, and whole domains below a `*.`', () => {
  const allowedHosts = ['Gateway.example.com', '*.svc.cluster.local'];
  const isAllowed = createHostCheck({ listenHost: '::', allowedHosts });
  expect(isAllowed('gateway.EXAMPLE.com.:8443')).toBe(true);
  expect(isAllowed('gw.llm.svc.cluster.local')).toBe(true);
  expect(isAllowed('10.0.0.1')).toBe(true);
  for (const host of [...OWN_WORDS, 'example.com', 'svc.cluster.local', 'xsvc.cluster.local', '__proto__']) {
    expect(isAllowed(host), host).toBe(false);
  }
});

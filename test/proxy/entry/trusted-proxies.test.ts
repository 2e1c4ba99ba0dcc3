import { describe, expect, test } from 'vitest';
import { createTrustedProxies } from '#proxy/entry';

const proxies = createTrustedProxies(['10.1.2.3/8', '192.0.2.7', '::1', 'fd00::/8', 'fe80::/10']);

describe('the trusted proxies', () => {
  test.each([
    '10.0.0.0',
    '10.255.255.255',
    '::ffff:10.0.0.1',
    '192.0.2.7',
    '::ffff:192.0.2.7',
    '::1',
    'fdff::1',
    'fe80::1%eth0',
  ])('have %s', (address) => {
    expect(proxies.has(address)).toBe(true);
  });

  test.each([
    '11.0.0.0',
    '192.0.2.8',
    '::ffff:192.0.2.8',
    '::2',
    'fc00::1',
    '2001:db8::1%eth0',
    '10.0.0.1, 10.0.0.2',
    '',
    undefined,
  ])('do not have %s', (address) => {
    expect(proxies.has(address)).toBe(false);
  });

  test('have nobody if the list is empty', () => {
    expect(createTrustedProxies([]).has('127.0.0.1')).toBe(false);
  });
});

import { describe, expect, it } from 'vitest';
import { parseBaseUrl, parseListenAddress, printListenAddress } from '#config/addresses';

describe('a listen address', () => {
  it.each([
    ['127.0.0.1:9090', '127.0.0.1', 9090],
    ['localhost:0', 'localhost', 0],
    ['[::1]:65535', '::1', 65_535],
    ['[fe80::1%eth0]:80', 'fe80::1%eth0', 80],
  ])('%s is host and port, and prints as it was', (text, host, port) => {
    const address = parseListenAddress(text);
    expect(address).toEqual({ host, port });
    expect(address && printListenAddress(address)).toBe(text);
  });

  it('without a host means all IPv4 addresses', () => {
    expect(parseListenAddress(':8080')).toEqual({ host: '0.0.0.0', port: 8080 });
  });

  it.each(['8080', ':', 'host', 'host:', '::1:80', '[::1]', '*:80', 'a:65536', 'http://a:80', 'a b:80'])(
    '%j is refused',
    (text) => {
      expect(parseListenAddress(text)).toBeNull();
    },
  );
});

describe('a base URL', () => {
  it.each([
    ['http://10.0.0.11:8000', 'http://10.0.0.11:8000'],
    ['http://h/', 'http://h'],
    ['https://h:443/team/a/', 'https://h/team/a'],
    ['http://[::1]:8000//', 'http://[::1]:8000'],
  ])('%s loses its trailing slashes and its default port', (text, url) => {
    expect(parseBaseUrl(text)).toBe(url);
  });

  it.each([
    '',
    'h:80',
    'ftp://h',
    'http://',
    'http:h',
    'http://u:p@h',
    'http://u@h',
    'http://h?x=1',
    'http://h#x',
  ])('%j is refused', (text) => {
    expect(parseBaseUrl(text)).toBeNull();
  });
});

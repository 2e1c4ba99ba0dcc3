import { describe, expect, it } from 'vitest';
import { parseBaseUrl } from '#config/addresses';
import {
  network,
  parseCollectorUrl,
  parseReplicaUrl,
  parseServiceUrl,
  redisUrl,
  traceUrlTemplate,
} from '../../../src/config/schema/addresses.ts';

const parseNetwork = (text: string) => network().safeDecode(text).data ?? null;
const parseRedisUrl = (text: string) => redisUrl().safeDecode(text).data ?? null;
const parseTraceUrlTemplate = (text: string) => traceUrlTemplate().safeDecode(text).data ?? null;

describe('a URL with a control character, which URL.parse would leave out, is refused', () => {
  it.each(['\r', '\n', '\t', '\0', '\x7f', '\u0085', '\u2028'])('%j', (character) => {
    for (const place of [4, 7, 8, 11, 12]) {
      const insert = (text: string) => text.slice(0, place) + character + text.slice(place);
      expect(parseBaseUrl(insert('http://h/v1a'))).toBeNull();
      expect(parseReplicaUrl(insert('http://h/v1a'))).toBeNull();
      expect(parseCollectorUrl(insert('http://h/v1a'))).toBeNull();
      expect(parseServiceUrl(insert('http://hostname'))).toBeNull();
      expect(parseRedisUrl(insert('redis://host'))).toBeNull();
      expect(parseTraceUrlTemplate(insert('http://h/t/{trace_id}'))).toBeNull();
      expect(parseTraceUrlTemplate(`http://h/{trace_id}${character}`)).toBeNull();
    }
  });
});

describe('the base URL of a collector', () => {
  it.each([
    'http://c:4318/v1/traces',
    'http://c:4318/v1/traces/',
    'http://c:4318/v1/metrics',
    'http://c:4318',
  ])('%s loses the path that each call adds', (text) => {
    expect(parseCollectorUrl(text)).toBe('http://c:4318');
  });

  it.each(['http://c/otlp', 'http://c/v1', 'http://c/v1/traces/x'])('%s stays', (text) => {
    expect(parseCollectorUrl(text)).toBe(text);
  });
});

describe('the URL of a replica', () => {
  it.each([
    ['http://a:8000/v1', 'http://a:8000'],
    ['http://a:8000/v1/', 'http://a:8000'],
    ['https://a/proxy/v1', 'https://a/proxy'],
    ['http://a:8000/v1/proxy', 'http://a:8000/v1/proxy'],
    ['http://a:8000/v10', 'http://a:8000/v10'],
    ['http://a:8000', 'http://a:8000'],
  ])('%s is that of %s', (text, url) => {
    expect(parseReplicaUrl(text)).toBe(url);
  });

  it('has no credentials', () => {
    expect(parseReplicaUrl('http://user:secret@a:8000/v1')).toBeNull();
  });
});

describe('the URL of a Redis server', () => {
  it.each(['redis://h', 'rediss://h:6380/', 'redis://user:p%2Fw@h/5', 'redis://:p@[::1]:6379'])(
    '%s is one, and stays as it is',
    (text) => {
      expect(parseRedisUrl(text)).toBe(text);
    },
  );

  it.each(['', 'h:6379', 'http://h', 'redis:h', 'redis://', 'redis://h/db', 'redis://h?db=1', 'redis://h#x'])(
    '%j is refused',
    (text) => {
      expect(parseRedisUrl(text)).toBeNull();
    },
  );
});

describe("a trace's URL", () => {
  it.each([
    'http://localhost:16686/trace/{trace_id}',
    'https://tempo.example/explore?left={"queries":[{"query":"{trace_id}"}]}',
    'https://ui.example/#/traces/{trace_id}?from={trace_id}',
  ])('%s is one, and stays as it is', (text) => {
    expect(parseTraceUrlTemplate(text)).toBe(text);
  });

  it.each([
    'http://localhost:16686/trace/',
    'http://{trace_id}.example/',
    'http://localhost:16686{trace_id}',
    'javascript:alert(1)//{trace_id}',
    'https://user:pass@ui.example/{trace_id}',
    '/trace/{trace_id}',
    '{trace_id}',
    '',
  ])('%s is none', (text) => {
    expect(parseTraceUrlTemplate(text)).toBeNull();
  });
});

describe('a network', () => {
  it.each([
    '10.0.0.7',
    '10.0.0.0/8',
    '0.0.0.0/0',
    '::1',
    'fd00::/8',
    '2001:db8::/128',
    '::ffff:10.0.0.0/104',
  ])('may be %s', (text) => {
    expect(parseNetwork(text)).toBe(text);
  });

  it.each([
    '',
    '10.0.0',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/08',
    '::/129',
    'fe80::1%eth0',
    'localhost',
    '*',
    ' ::1',
  ])('may not be %j', (text) => {
    expect(parseNetwork(text)).toBeNull();
  });
});

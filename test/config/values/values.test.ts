import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  parseBaseUrl,
  parseCollectorUrl,
  parseDuration,
  parseListenAddress,
  parseNetwork,
  parseRedisUrl,
  parseReplicaUrl,
  parseServiceUrl,
  parseSize,
  parseTraceUrlTemplate,
  printDuration,
  printListenAddress,
  printSize,
} from '../../../src/config/values/values.ts';

describe('a duration', () => {
  it.each([
    ['500ms', 500],
    ['10s', 10_000],
    ['15m', 900_000],
    ['1h', 3_600_000],
    ['0s', 0],
    ['1h30m', 5_400_000],
    ['1m30s', 90_000],
    ['1h1ms', 3_600_001],
    ['1.5s', 1_500],
    ['0.5h', 1_800_000],
    ['1.1s', 1_100],
  ])('%s is read in milliseconds', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    '',
    '10',
    '-1s',
    '1 s',
    '1h 30m',
    '1d',
    '30m1h',
    '1s1s',
    '1.5ms',
    '1.s',
    '.5s',
    '1..5s',
    '1s5',
    '10S',
    's',
  ])('%j is refused', (text) => {
    expect(parseDuration(text)).toBeNull();
  });

  it('of any length is parsed as it was printed', () => {
    fc.assert(
      fc.property(fc.nat({ max: 86_400_000 }), (ms) => {
        expect(parseDuration(printDuration(ms))).toBe(ms);
      }),
    );
  });

  it('in any unit means the same after printing', () => {
    fc.assert(
      fc.property(fc.nat({ max: 10_000 }), fc.constantFrom('ms', 's', 'm', 'h'), (count, unit) => {
        const ms = parseDuration(`${count}${unit}`) ?? Number.NaN;
        expect(parseDuration(printDuration(ms))).toBe(ms);
      }),
    );
  });
});

describe('a size', () => {
  it.each([
    ['32MiB', 33_554_432],
    ['512KiB', 524_288],
    ['1GiB', 1_073_741_824],
    ['10MB', 10_000_000],
    ['4kB', 4_000],
    ['4096', 4_096],
    ['7B', 7],
    ['1.5MiB', 1_572_864],
    ['0.1GB', 100_000_000],
  ])('%s is read in bytes', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  it.each(['', '1.5', '1.0001kB', '1.MB', '-1', '1 MiB', '32M', '1mib', '1TiB', '0x10', '1e3'])(
    '%j is refused',
    (text) => {
      expect(parseSize(text)).toBeNull();
    },
  );

  it('of any number of bytes is parsed as it was printed', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.constantFrom(1, 1000, 1024, 1_048_576), (count, unit) => {
        const bytes = (count % 1_000_000) * unit;
        expect(parseSize(String(printSize(bytes)))).toBe(bytes);
      }),
    );
  });
});

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

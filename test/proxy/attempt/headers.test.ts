import { describe, expect, test } from 'vitest';
import { Fields } from '#wire/message';
import { toClientTrailers, toRelayedHead, toUpstreamHead } from '../../../src/proxy/attempt/headers.ts';
import { requestOf, responseOf } from '../../wire/heads.ts';

const TARGET = { host: 'replica:8000', path: '/base/x' };
const IDENTITY = {
  viaName: 'gw',
  requestId: 'id-1',
  apiKey: null,
  withheldFields: null,
  trace: { traceparent: '00-1-2-01', tracestate: undefined },
};
const CLIENT = { remoteAddress: '192.0.2.1', scheme: 'http' } as const;
const ENDS = [...['Accept-Encoding: identity', 'X-Request-Id: id-1', 'traceparent: 00-1-2-01'], ...['', '']];

/** The lines to a replica of a request with these lines after its first one. */
function send(
  lines: readonly string[],
  changes: { readonly apiKey?: string; readonly withheldFields?: ReadonlySet<string> } = {},
  client: Parameters<typeof toUpstreamHead>[3] = CLIENT,
  bodyBytes: number | 'chunked' | null = null,
): readonly string[] {
  const head = requestOf(['POST /x HTTP/1.1', ...lines]);
  return toUpstreamHead(head, TARGET, { ...IDENTITY, ...changes }, client, bodyBytes).split('\r\n');
}

describe('the head of a request to a replica', () => {
  test('has the fields of the client in their order and spelling, and then ours', () => {
    expect(send(['X-B: 1', 'Host: client', 'x-a: 2', 'X-B: 3'])).toEqual([
      ...['POST /base/x HTTP/1.1', 'Host: replica:8000', 'X-B: 1', 'x-a: 2', 'X-B: 3'],
      ...['X-Forwarded-For: 192.0.2.1', 'X-Forwarded-Host: client'],
      ...['Via: 1.1 gw', 'X-Forwarded-Proto: http', ...ENDS],
    ]);
  });

  test.each([
    ...['Connection: x-b', 'Proxy-Connection: x', 'Keep-Alive: timeout=1', 'TE: trailers', 'Upgrade: x'],
    ...['Transfer-Encoding: chunked', 'Expect: 100-continue', 'Content-Length: 3', 'Accept-Encoding: gzip'],
    ...['X-Request-Id: theirs', 'Traceparent: x', 'Tracestate: x', 'Baggage: x', 'Forwarded: for=x'],
    ...['X-Real-IP: x', 'X-Forwarded-Proto: ftp', 'X-Forwarded-Host: x', 'Content_Length: 3'],
  ])('has nothing of %s', (line) => {
    expect(send(['Host: client', line, 'X-A: b'])).toEqual(send(['Host: client', 'X-A: b']));
  });

  test('has no field that Connection names', () => {
    expect(send(['Host: client', 'Connection: X-B, close', 'x-b: 1', 'X-A: b'])).toEqual(
      send(['Host: client', 'X-A: b']),
    );
  });

  test('has the path of addresses that it came by, with that of the client if it is known', () => {
    const lines = ['Host: client', 'X-Forwarded-For: a', 'X-Forwarded-For: b, c'];
    expect(send(lines)).toContain('X-Forwarded-For: a, b, c, 192.0.2.1');
    const unknown = { remoteAddress: undefined, scheme: 'https' } as const;
    expect(send(lines, {}, unknown)).toContain('X-Forwarded-For: a, b, c');
    expect(send(lines, {}, unknown)).toContain('X-Forwarded-Proto: https');
    expect(send(['Host: client'], {}, unknown).join()).not.toContain('X-Forwarded-For');
  });

  test('says nothing of a host that HTTP/1.0 leaves out', () => {
    const text = toUpstreamHead(requestOf(['GET /x HTTP/1.0']), TARGET, IDENTITY, CLIENT, null);
    expect(text.split('\r\n')).toEqual([
      ...['GET /base/x HTTP/1.1', 'Host: replica:8000', 'X-Forwarded-For: 192.0.2.1'],
      ...['Via: 1.0 gw', 'X-Forwarded-Proto: http', ...ENDS],
    ]);
  });

  test('has the key of the replica in place of those of the client', () => {
    const lines = ['Host: client', 'Authorization: Bearer theirs', 'X-Api-Key: theirs', 'X-A: b'];
    expect(send(lines)).toEqual(
      expect.arrayContaining(['Authorization: Bearer theirs', 'X-Api-Key: theirs']),
    );
    expect(send(lines, { apiKey: 'ours' }).slice(2, 5)).toEqual([
      ...['X-A: b', 'Authorization: Bearer ours', 'X-Forwarded-For: 192.0.2.1'],
    ]);
  });

  test('has no field that is withheld', () => {
    const withheldFields = new Set(['x-tenant']);
    expect(send(['Host: client', 'X-Tenant: t', 'X-A: b'], { withheldFields })).toEqual(
      send(['Host: client', 'X-A: b']),
    );
  });

  test.each([
    [0, 'Content-Length: 0'],
    [12, 'Content-Length: 12'],
    ['chunked', 'Transfer-Encoding: chunked'],
  ] as const)('says how long its body is: %s', (bodyBytes, line) => {
    const lines = send(['Host: client'], {}, CLIENT, bodyBytes);
    expect(lines[lines.indexOf('X-Forwarded-Host: client') + 1]).toBe(line);
    expect(lines.filter((each) => /^(?:Content-Length|Transfer-Encoding)/.test(each))).toEqual([line]);
  });

  test('has the state of the trace if there is one', () => {
    const trace = { traceparent: '00-1-2-01', tracestate: 'a=b' };
    const text = toUpstreamHead(requestOf(['GET /x HTTP/1.0']), TARGET, { ...IDENTITY, trace }, CLIENT, null);
    expect(text).toContain('\r\ntracestate: a=b\r\nVia: ');
  });
});

describe('the head of a response to a client', () => {
  function relay(lines: readonly string[], method = 'POST', status = '200 OK') {
    return toRelayedHead(responseOf([`HTTP/1.1 ${status}`, ...lines], method));
  }

  test('has its status, its reason and its fields, without those of the connection', () => {
    const head = relay([
      ...['X-A: b', 'Connection: X-B', 'X-B: 1', 'Keep-Alive: timeout=1', 'Content-Length: 2'],
      ...[
        'Proxy-Connection: x',
        'TE: x',
        'Upgrade: x',
        'X-Request-Id: theirs',
        'Set-Cookie: c',
        'set-cookie: d',
      ],
    ]);
    expect(head).toEqual({
      status: 200,
      reason: 'OK',
      contentLength: 2,
      endsWithConnection: false,
      fieldLines: 'X-A: b\r\nSet-Cookie: c\r\nset-cookie: d\r\n',
      connectionOptions: new Set(['x-b']),
      isEventStream: false,
      isJson: false,
      isEncoded: false,
    });
  });

  test.each([
    [['Content-Length: 5'], 'POST', 5, false],
    [['Transfer-Encoding: chunked'], 'POST', null, false],
    [[], 'POST', null, true],
    [['Content-Length: 5', 'X-A: b'], 'HEAD', 5, false],
    [[], 'HEAD', null, false],
    [['Content-Length: 5', 'Content-Type: text/event-stream'], 'POST', null, false],
  ] as const)(
    'says how long it is, as far as it is known: %j to %s',
    (lines, method, length, endsByClosing) => {
      const head = relay(lines, method);
      expect([head.contentLength, head.endsWithConnection]).toEqual([length, endsByClosing]);
    },
  );

  test.each([
    ['text/event-stream', true, false],
    ['Text/Event-Stream; charset=utf-8', true, false],
    ['text/event-stream x', true, false],
    ['text/event-streams', false, false],
    ['xtext/event-stream', false, false],
    ['application/json', false, true],
    ['Application/JSON; charset=utf-8', false, true],
    ['application/problem+json', false, true],
    ['application/jsonl', false, false],
    ['xapplication/json', false, false],
    ['text/plain', false, false],
  ])('tells what it is: %s', (type, isEventStream, isJson) => {
    expect(relay([`Content-Type: ${type}`])).toMatchObject({ isEventStream, isJson });
  });

  test.each([
    ['gzip', true],
    ['Identity', false],
  ])('tells whether it can be read: %s', (coding, isEncoded) => {
    expect(relay([`Content-Encoding: ${coding}`])).toMatchObject({
      isEncoded,
      fieldLines: `Content-Encoding: ${coding}\r\n`,
    });
  });
});

describe('the trailers of a response to a client', () => {
  const toFields = (names: readonly string[]) => {
    const fields = new Fields();
    for (const [index, name] of names.entries()) fields.add(name, name.toLowerCase(), String(index));
    return fields;
  };

  test('are those that may stand there', () => {
    const names = [
      ...['X-A', 'Connection', 'Content-Length', 'Host', 'Trailer', 'Authorization', 'Proxy-Authenticate'],
      ...[
        'Proxy-Authorization',
        'WWW-Authenticate',
        'Set-Cookie',
        'Cookie',
        'Content-Type',
        'Content-Encoding',
      ],
      ...[
        'Content-Range',
        'Cache-Control',
        'Expect',
        'Location',
        'Vary',
        'Retry-After',
        'Age',
        'Date',
        'Expires',
      ],
      ...['Max-Forwards', 'Range', 'Traceparent', 'X-Request-Id', 'Transfer-Encoding', 'x-b'],
    ];
    const kept = toClientTrailers(toFields(names), new Set(['x-c']));
    expect([kept.names, kept.lowerNames, kept.values]).toEqual([
      ...[
        ['X-A', 'x-b'],
        ['x-a', 'x-b'],
        ['0', String(names.length - 1)],
      ],
    ]);
  });

  test('are not those that Connection named, and none where there are none', () => {
    expect(toClientTrailers(toFields(['X-A', 'X-B']), new Set(['x-a'])).names).toEqual(['X-B']);
    expect(toClientTrailers(toFields(['X-A']), null).names).toEqual(['X-A']);
    expect(toClientTrailers(new Fields(), null).count).toBe(0);
  });
});

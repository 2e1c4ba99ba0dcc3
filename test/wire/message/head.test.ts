import { METHODS } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { Fields } from '../../../src/wire/message/fields.ts';
import {
  findHeadEnd,
  parseRequestHead,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
} from '../../../src/wire/message/head.ts';
import { HttpError } from '../../../src/wire/message/http-error.ts';

const MALFORMED = new HttpError('malformed');

function parseRequest(text: string): RequestHead {
  const bytes = Buffer.from(text, 'latin1');
  const end = findHeadEnd(bytes, 0);
  if (end === -1) throw new Error('The head has no end.');
  return parseRequestHead(bytes, 0, end);
}

function parseResponse(text: string, requestMethod = 'POST'): ResponseHead {
  const bytes = Buffer.from(text, 'latin1');
  const end = findHeadEnd(bytes, 0);
  if (end === -1) throw new Error('The head has no end.');
  return parseResponseHead(bytes, 0, end, requestMethod);
}

/** A request with the given lines after its Host. */
function request(...lines: readonly string[]): string {
  return `${['POST /v1/x HTTP/1.1', 'Host: g', ...lines].join('\r\n')}\r\n\r\n`;
}

function oldRequest(...lines: readonly string[]): string {
  return `${['POST /v1/x HTTP/1.0', ...lines].join('\r\n')}\r\n\r\n`;
}

function response(...lines: readonly string[]): string {
  return `${['HTTP/1.1 200 OK', ...lines].join('\r\n')}\r\n\r\n`;
}

function oldResponse(...lines: readonly string[]): string {
  return `${['HTTP/1.0 200 OK', ...lines].join('\r\n')}\r\n\r\n`;
}

/** Fields as text, one per line. */
function toText({ names, values }: Fields): string {
  return names.map((name, index) => `${name}: ${values[index]}`).join('\n');
}

describe('the end of a head', () => {
  const HEAD = 'GET / HTTP/1.1\r\nHost: g\r\n\r\n';

  test.for([
    ['a head alone', HEAD, 0, HEAD.length],
    ['a head followed by other bytes', `${HEAD}GET\r\n\r\n`, 0, HEAD.length],
    ['a head after other bytes', `\n\n${HEAD}`, 2, 2 + HEAD.length],
    ['a head after an empty line', `\r\n${HEAD}`, 0, 2 + HEAD.length],
    ['a head without fields', 'GET / HTTP/1.0\r\n\r\n', 0, 18],
    ['two empty lines, which are not a head', `\r\n\r\n${HEAD}`, 0, 4],
    ['nothing', '', 0, -1],
    ['nothing after other bytes', HEAD, HEAD.length, -1],
    ['an empty line', '\r\n', 0, -1],
    ['half a line end', 'GET / HTTP/1.1\r', 0, -1],
    ['a head whose last byte is missing', HEAD.slice(0, -1), 0, -1],
  ] as const)('%s', ([, text, start, end]) => {
    expect(findHeadEnd(Buffer.from(text, 'latin1'), start)).toBe(end);
  });

  test('is found however the bytes before it are split', () => {
    const bytes = Buffer.from(`GET${HEAD}x`);
    const end = bytes.length - 1;
    for (let cut = 3; cut < end; cut++) {
      expect(findHeadEnd(bytes.subarray(0, cut), 3)).toBe(-1);
      expect(findHeadEnd(bytes, 3, cut)).toBe(end);
    }
  });

  test.for([
    ['a NUL', 'GET /\0'],
    ['a control byte', 'GET /\x01'],
    ['a DEL', 'GET /\x7f'],
    ['a bare LF', 'GET / HTTP/1.1\n'],
    ['a bare LF at the beginning', '\nGET'],
    ['a bare CR', 'GET / HTTP/1.1\rHost'],
    ['CR CR LF', 'GET / HTTP/1.1\r\r\n'],
    ['LF LF', 'GET / HTTP/1.1\r\nHost: g\r\n\n'],
    ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ] as const)('does not come when there is %s: refused at once', ([, text]) => {
    const bytes = Buffer.from(text, 'latin1');
    expect(() => findHeadEnd(bytes, 0)).toThrow(MALFORMED);
    // However it is split: bytes that were scanned are skipped.
    for (let cut = 1; cut < bytes.length; cut++) {
      const refuse = () => {
        findHeadEnd(bytes.subarray(0, cut), 0);
        findHeadEnd(bytes, 0, cut);
      };
      expect(refuse).toThrow(MALFORMED);
    }
  });

  test('is searched for only in new bytes', () => {
    expect(findHeadEnd(Buffer.from('\0GET / HTTP/1.1'), 0, 6)).toBe(-1);
    expect(findHeadEnd(Buffer.from('\0GET / HTTP/1.1\r\n\r\n'), 0, 6)).toBe(19);
  });

  test('an LF whose CR is before the head is a bare LF', () => {
    expect(() => findHeadEnd(Buffer.from('\r\nGET'), 1)).toThrow(MALFORMED);
  });
});

describe('a request', () => {
  test('has its method, target, version and fields unchanged', () => {
    const head = parseRequest(
      'POST /v1/chat/completions?a=b HTTP/1.1\r\nHost: 127.0.0.1:80\r\ncontent-LENGTH: 12\r\nX-Own: a\t b\r\n\r\n',
    );

    expect(head).toMatchObject({
      method: 'POST',
      target: '/v1/chat/completions?a=b',
      minorVersion: 1,
      framing: { kind: 'length', bytes: 12 },
      keepsAlive: true,
      connectionOptions: null,
      expectsContinue: false,
    });
    expect(toText(head.fields)).toBe('Host: 127.0.0.1:80\ncontent-LENGTH: 12\nX-Own: a\t b');
    expect(head.fields.lowerNames).toEqual(['host', 'content-length', 'x-own']);
  });

  test('may be in the middle of a read', () => {
    const text = request('X-A: b');
    const bytes = Buffer.from(`\r\n\r\nxyz${text}\r\n\r\n`);
    expect(toText(parseRequestHead(bytes, 7, 7 + text.length).fields)).toBe('Host: g\nX-A: b');
  });

  test('may have one empty line before it, but not two', () => {
    expect(parseRequest(`\r\n${request()}`).method).toBe('POST');
    expect(() => parseRequest(`\r\n\r\n${request()}`)).toThrow(MALFORMED);
  });

  test.for(METHODS)('may be %s', (method) => {
    const target = method === 'CONNECT' ? 'g:443' : '/';
    expect(parseRequest(`${method} ${target} HTTP/1.1\r\nHost: g\r\n\r\n`)).toMatchObject({ method, target });
  });

  test.for([
    '/',
    '//v1',
    '/v1/%63hat/../x;y',
    '/?{"a":[1]}|^`\\#x',
    '*',
    'http://gateway',
    'http://gateway/v1/models?x',
    'https://127.0.0.1:9?x',
    'HTTP://[::1]:80/',
  ])('may have the target %s', (target) => {
    expect(parseRequest(`GET ${target} HTTP/1.1\r\nHost: g\r\n\r\n`).target).toBe(target);
  });

  test.for([
    ['no target', 'GET HTTP/1.1'],
    ['an empty target', 'GET  HTTP/1.1'],
    ['two spaces before the target', 'GET  / HTTP/1.1'],
    ['two spaces before the version', 'GET /  HTTP/1.1'],
    ['a tab before the target', 'GET\t/ HTTP/1.1'],
    ['a tab before the version', 'GET /\tHTTP/1.1'],
    ['a target with a space', 'GET / x HTTP/1.1'],
    ['a target with a tab', 'GET /\tx HTTP/1.1'],
    ['a target beyond ASCII', 'GET /\xe9 HTTP/1.1'],
    ['a target with a DEL', 'GET /\x7f HTTP/1.1'],
    ['a target that is not a path', 'GET v1 HTTP/1.1'],
    ['a query alone', 'GET ?x HTTP/1.1'],
    ['a target that begins with a star', 'GET *x HTTP/1.1'],
    ['a host and port', 'GET g:80 HTTP/1.1'],
    ['a URL without a host', 'GET http:///x HTTP/1.1'],
    ['a URL of a scheme only', 'GET http: HTTP/1.1'],
    ['a URL with a user', 'GET http://u@g/ HTTP/1.1'],
    ['a URL with a fragment for its path', 'GET http://g#x HTTP/1.1'],
    ['a URL with a broken address', 'GET http://[::g]/ HTTP/1.1'],
    ['CONNECT to a path', 'CONNECT / HTTP/1.1'],
    ['CONNECT without a port', 'CONNECT g HTTP/1.1'],
    ['CONNECT with an empty port', 'CONNECT g: HTTP/1.1'],
    ['CONNECT to a URL', 'CONNECT http://g:80 HTTP/1.1'],
    ['an unknown method', 'SMUGGLE / HTTP/1.1'],
    ['a method in lower case', 'get / HTTP/1.1'],
    ['the name of an object member as method', 'constructor / HTTP/1.1'],
    ['no method', ' / HTTP/1.1'],
    ['a space before the method', ' GET / HTTP/1.1'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0'],
    ['no version', 'GET /'],
    ['an empty version', 'GET / '],
    ['HTTP/0.9', 'GET / HTTP/0.9'],
    ['HTTP/1.2', 'GET / HTTP/1.2'],
    ['HTTP/2', 'GET / HTTP/2'],
    ['HTTP/2.0', 'GET / HTTP/2.0'],
    ['HTTP/1.10', 'GET / HTTP/1.10'],
    ['HTTP/11', 'GET / HTTP/11'],
    ['HTTP/1', 'GET / HTTP/1'],
    ['HTTP/1.', 'GET / HTTP/1.'],
    ['HTTP/+1.1', 'GET / HTTP/+1.1'],
    ['http/1.1', 'GET / http/1.1'],
    ['RTSP/1.0', 'OPTIONS / RTSP/1.0'],
    ['ICE/1.0', 'SOURCE / ICE/1.0'],
    ['a space after the version', 'GET / HTTP/1.1 '],
    ['a line of another protocol', 'SSH-2.0-OpenSSH_9.6'],
    ['a line that does not end after its version', 'GET / HTTP/1.1XXX-A: b'],
  ] as const)('with %s is malformed', ([, line]) => {
    expect(() => parseRequest(`${line}\r\nHost: g\r\n\r\n`)).toThrow(MALFORMED);
  });

  test.for([
    '',
    'g',
    'gateway.example',
    'gateway.example:8080',
    'gateway:',
    '127.0.0.1:80',
    '[::1]',
    '[::ffff:127.0.0.1]:80',
    "a-b_c~!$&'()*+,;=",
    'a%2Fb',
  ])('may have the Host "%s"', (host) => {
    expect(parseRequest(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`).fields.get('host')).toBe(host);
    expect(parseRequest(`GET / HTTP/1.0\r\nHost: ${host}\r\n\r\n`).fields.get('host')).toBe(host);
  });

  test.for([
    'a b',
    'a b@c',
    'a@b',
    'a/b',
    'http://a',
    'a?b',
    'a#b',
    'a\\b',
    'a"b',
    'a<b',
    'a%2',
    'a%zz',
    'a:b',
    'a:80:80',
    ':80',
    'a:-1',
    '[::1',
    '::1',
    '[]',
    '[g::1]',
    '[fe80::1%25eth0]',
    '[::1]a',
    '[1:2]',
    '[v1.x]',
    'a\xe9',
    'a, b',
  ])('with the Host "%s" is malformed', (host) => {
    expect(() => parseRequest(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).toThrow(MALFORMED);
    expect(() => parseRequest(`GET / HTTP/1.0\r\nHost: ${host}\r\n\r\n`)).toThrow(MALFORMED);
  });

  test.for([
    ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
    ['no Host, but another field', 'GET / HTTP/1.1\r\nX-Host: g\r\n\r\n'],
    ['two Hosts', request('Host: g')],
    ['two Hosts with different spellings', request('hOST: g')],
    ['an empty Host and another', request('Host:')],
    ['two Hosts in HTTP/1.0', oldRequest('Host: g', 'Host: g')],
  ] as const)('with %s is malformed', ([, text]) => {
    expect(() => parseRequest(text)).toThrow(MALFORMED);
  });

  test('of HTTP/1.0 needs no Host', () => {
    expect(parseRequest(oldRequest()).minorVersion).toBe(0);
  });

  test('without a length has no body', () => {
    expect(parseRequest(request()).framing).toEqual({ kind: 'none' });
    expect(parseRequest(oldRequest()).framing).toEqual({ kind: 'none' });
  });

  test('with CONNECT has no body, and its connection is not kept: a tunnel would begin', () => {
    const head = parseRequest('CONNECT g:443 HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\n\r\n');
    expect(head).toMatchObject({ framing: { kind: 'none' }, keepsAlive: false });
  });

  test.for([
    [request('Expect: 100-continue'), true],
    [request('Expect: 100-Continue'), true],
    [oldRequest('Expect: 100-continue'), false],
    [request('Expect: 200-ok'), false],
    [request('Expect: 100-continue', 'Expect: 100-continue'), false],
    [request(), false],
  ] as const)('expects a 100 only if it says so (case %#)', ([text, expectsContinue]) => {
    expect(parseRequest(text).expectsContinue).toBe(expectsContinue);
  });
});

describe('a response', () => {
  test('has its status, reason, version and fields unchanged', () => {
    const head = parseResponse(response('content-length: 2', 'Set-Cookie: a', 'set-cookie: b'));

    expect(head).toMatchObject({
      status: 200,
      reason: 'OK',
      minorVersion: 1,
      framing: { kind: 'length', bytes: 2 },
      keepsAlive: true,
      connectionOptions: null,
    });
    expect(toText(head.fields)).toBe('content-length: 2\nSet-Cookie: a\nset-cookie: b');
  });

  test.for([
    ['HTTP/1.1 404 Not Found', 404, 'Not Found'],
    ['HTTP/1.1 404  Not\tFound ', 404, ' Not\tFound '],
    ['HTTP/1.1 200 ', 200, ''],
    ['HTTP/1.1 200', 200, ''],
    ['HTTP/1.1 100 Continue', 100, 'Continue'],
    ['HTTP/1.1 999 \xe9\xff\x80', 999, '\xe9\xff\x80'],
  ] as const)('may begin with "%s"', ([line, status, reason]) => {
    expect(parseResponse(`${line}\r\n\r\n`)).toMatchObject({ status, reason });
  });

  test.for([
    'HTTP/1.1 20 OK',
    'HTTP/1.1 099 OK',
    'HTTP/1.1 000 OK',
    'HTTP/1.1 2000 OK',
    'HTTP/1.1 +20 OK',
    'HTTP/1.1 2x0 OK',
    'HTTP/1.1 2/0 OK',
    'HTTP/1.1 200 OK\0\0X-A: b',
    'HTTP/1.1 200XXX-A: b',
    'HTTP/1.1  200 OK',
    'HTTP/1.1\t200 OK',
    'HTTP/1.1 200\tOK',
    'HTTP/1.1 200OK',
    'HTTP/1.1 200 O\x01K',
    'HTTP/1.1 200 O\0K',
    'HTTP/1.1 200 O\x7fK',
    'HTTP/1.1 200 O\rK',
    'HTTP/1.1 200 O\nK',
    'HTTP/1.1',
    'HTTP/1.1 ',
    'HTTP/1.2 200 OK',
    'HTTP/0.9 200 OK',
    'HTTP/2.0 200 OK',
    'HTTP/2 200',
    'http/1.1 200 OK',
    'RTSP/1.0 200 OK',
    'ICY 200 OK',
    ' HTTP/1.1 200 OK',
    '\r\nHTTP/1.1 200 OK',
    'GET / HTTP/1.1',
    '',
  ])('that begins with %j is malformed', (line) => {
    expect(() => parseResponse(`${line}\r\nContent-Length: 0\r\n\r\n`)).toThrow(MALFORMED);
  });

  test.for([
    ['to HEAD', response('Content-Length: 5'), 'HEAD'],
    ['to HEAD, chunked', response('Transfer-Encoding: chunked'), 'HEAD'],
    ['to HEAD, without a length', response(), 'HEAD'],
    ['100', 'HTTP/1.1 100 Continue\r\n\r\n', 'POST'],
    ['103', 'HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n', 'POST'],
    ['204', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', 'POST'],
    ['304', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', 'GET'],
    ['304, chunked', 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n', 'GET'],
  ] as const)('%s has no body, whatever its head says', ([, text, method]) => {
    expect(parseResponse(text, method)).toMatchObject({ framing: { kind: 'none' }, keepsAlive: true });
  });

  test('with 101 does not keep its connection: another protocol begins', () => {
    const head = parseResponse('HTTP/1.1 101 Switching Protocols\r\nContent-Length: 0\r\n\r\n');
    expect(head).toMatchObject({ framing: { kind: 'none' }, keepsAlive: false });
  });

  test('without a length ends when the connection closes', () => {
    expect(parseResponse(response())).toMatchObject({ framing: { kind: 'until_close' }, keepsAlive: false });
    expect(parseResponse(oldResponse('Connection: keep-alive'))).toMatchObject({
      framing: { kind: 'until_close' },
      keepsAlive: false,
    });
  });

  test('may have request fields, in any number', () => {
    expect(toText(parseResponse(response('Host: a b', 'Host: c', 'Expect: x')).fields)).toBe(
      'Host: a b\nHost: c\nExpect: x',
    );
  });
});

describe.for([
  ['a request', request, oldRequest, parseRequest],
  ['a response', response, oldResponse, parseResponse],
] as const)('the fields of %s', ([, compose, composeOld, parse]) => {
  test.for([
    ['a value without white space', 'X-A:b', 'X-A', 'b'],
    ['white space around a value', 'X-A: \t b c\t ', 'X-A', 'b c'],
    ['an empty value', 'X-A:', 'X-A', ''],
    ['a value of white space', 'X-A: \t ', 'X-A', ''],
    ['a colon in a value', 'X-A: b:c', 'X-A', 'b:c'],
    ['a value beyond ASCII, byte for byte', 'X-A: \xe9\x80\xff', 'X-A', '\xe9\x80\xff'],
    ['a value with a no-break space at its end', 'X-A: b\xa0', 'X-A', 'b\xa0'],
    ['a name with every kind of character', "!#$%&'*+-.^_`|~09azAZ: b", "!#$%&'*+-.^_`|~09azAZ", 'b'],
    ['a name of an object member', '__proto__: b', '__proto__', 'b'],
    ['a name of one character', 'a: b', 'a', 'b'],
    ['a name in capitals', 'ACCEPT: b', 'ACCEPT', 'b'],
  ] as const)('may have %s', ([, line, name, value]) => {
    const { names, lowerNames, values } = parse(compose(line)).fields;
    expect([names.at(-1), lowerNames.at(-1), values.at(-1)]).toEqual([name, name.toLowerCase(), value]);
  });

  test('may be in the thousands', () => {
    const lines = Array.from({ length: 4000 }, (_, index) => `x${index}: ${index}`);
    const { fields } = parse(compose(...lines));
    expect(fields.get('x3999')).toBe('3999');
    expect(toText(fields).split('\n').slice(-4000)).toEqual(lines);
  });

  test.for([
    ['a space before the colon', 'X-A : b'],
    ['a tab before the colon', 'X-A\t: b'],
    ['no colon', 'X-A'],
    ['no name', ': b'],
    ['a name with a space', 'X A: b'],
    ['a name with a bracket', 'X[A]: b'],
    ['a name with a NUL', 'X\0A: b'],
    ['a name beyond ASCII', 'X\xe9: b'],
    ['a name in quotes', '"X": b'],
    ['a space before the name', ' X-A: b'],
    ['a folded value', 'X-A: b\r\n c'],
    ['a value folded with a tab', 'X-A: b\r\n\tc'],
    ['a fold alone', 'X-A: b\r\n '],
    ['a bare CR', 'X-A: b\rc'],
    ['a bare CR before what looks like a field', 'X-A: b\rcd: e'],
    ['another byte and an LF for a line end', 'X-A: b\0\nX-C: d'],
    ['a bare LF', 'X-A: b\nc'],
    ['CR CR LF', 'X-A: b\r'],
    ['a NUL', 'X-A: b\0c'],
    ['a vertical tab', 'X-A: b\x0bc'],
    ['a form feed', 'X-A: b\x0cc'],
    ['an escape', 'X-A: b\x1bc'],
    ['a DEL', 'X-A: b\x7fc'],
  ] as const)('with %s are malformed', ([, line]) => {
    expect(() => parse(compose(line, 'X-B: c'))).toThrow(MALFORMED);
    expect(() => parse(compose('X-B: c', line))).toThrow(MALFORMED);
  });

  test.for([
    ['Content-Length: 0', 0],
    ['Content-Length: 7', 7],
    ['Content-Length: 007', 7],
    ['Content-Length:\t12 ', 12],
    ['Content-Length: 9007199254740991', 9007199254740991],
  ] as const)('%s gives a length', ([line, bytes]) => {
    expect(parse(compose(line)).framing).toEqual({ kind: 'length', bytes });
    expect(parse(composeOld(line)).framing).toEqual({ kind: 'length', bytes });
  });

  test.for([
    'Content-Length:',
    'Content-Length: +1',
    'Content-Length: -1',
    'Content-Length: 1.0',
    'Content-Length: 1e1',
    'Content-Length: 0x1',
    'Content-Length: 1 2',
    'Content-Length: 1,1',
    'Content-Length: 1:',
    'Content-Length: 1;1',
    'Content-Length: "1"',
    'Content-Length: \xb2',
    'Content-Length: 9007199254740992',
    'Content-Length: 00000000000000001',
    'Content-Length: 99999999999999999999999',
    'Content-Length: 1\r\nContent-Length: 1',
    'Content-Length: 1\r\ncontent-length: 2',
    'Content-Length: 1\r\nX: y\r\nCONTENT-length:',
  ])('%j is none', (line) => {
    expect(() => parse(compose(line))).toThrow(MALFORMED);
  });

  test.for(['Transfer-Encoding: chunked', 'transfer-encoding: \t Chunked ', 'TRANSFER-ENCODING:CHUNKED'])(
    '%s gives a chunked body',
    (line) => {
      expect(parse(compose(line)).framing).toEqual({ kind: 'chunked' });
    },
  );

  test.for([
    'Transfer-Encoding:',
    'Transfer-Encoding: identity',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: chunkedx',
    'Transfer-Encoding: chunked;q=1',
    'Transfer-Encoding: "chunked"',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked, chunked',
    'Transfer-Encoding: chunked,',
    'Transfer-Encoding: ,chunked',
    'Transfer-Encoding: \x0bchunked',
    'Transfer-Encoding: chunked\t',
    'Transfer-Encoding: chunked \t ',
    'Transfer-Encoding: chun\xebed',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
    'Transfer-Encoding: gzip\r\ntransfer-encoding: chunked',
    'Transfer-Encoding:\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r\nContent-Length: 5',
    'Content-Length: 0\r\nTransfer-Encoding: chunked',
  ])('%j is malformed', (line) => {
    expect(() => parse(compose(line))).toThrow(MALFORMED);
  });

  test('of HTTP/1.0 must not have Transfer-Encoding', () => {
    expect(() => parse(composeOld('Transfer-Encoding: chunked'))).toThrow(MALFORMED);
  });

  test('must not have both Content-Length and Transfer-Encoding, even without a body', () => {
    const lines = ['Content-Length: 5', 'Transfer-Encoding: chunked'];
    expect(() => parseResponse(response(...lines), 'HEAD')).toThrow(MALFORMED);
  });

  test.for([
    [[], null, true, false],
    [['Connection: close'], null, false, false],
    [['connection: CLOSE'], null, false, false],
    [['Connection: keep-alive'], null, true, true],
    [['Connection: Keep-Alive'], null, true, true],
    [['Connection: keep-alive, close'], null, false, false],
    [['Connection: close', 'Connection: keep-alive'], null, false, false],
    [['Connection: keep-alive', 'Connection: close'], null, false, false],
    [['Connection: X-A', 'Connection: close'], ['x-a', 'close'], false, false],
    [['Connection: close', 'Connection: X-A'], ['close', 'x-a'], false, false],
    [['Connection: Keep-Alive, X-A ,\tTE'], ['keep-alive', 'x-a', 'te'], true, true],
    [['Connection: ,, X-A,'], ['x-a'], true, false],
    [['Connection:'], null, true, false],
    [['Connection: closed'], ['closed'], true, false],
    [['Connection: not-close'], ['not-close'], true, false],
  ] as const)('%j decide whether the connection is kept', ([lines, options, isKept, isKeptByOld]) => {
    const length = 'Content-Length: 0';
    const expected = { connectionOptions: options === null ? null : new Set<string>(options) };
    expect(parse(compose(length, ...lines))).toMatchObject({ ...expected, keepsAlive: isKept });
    expect(parse(composeOld(length, ...lines))).toMatchObject({ ...expected, keepsAlive: isKeptByOld });
  });

  test.for(['close foo', '"close"', 'keep-alive; timeout=5', 'close\xa0', 'a=b'])(
    'with the Connection "%s" are malformed',
    (value) => {
      expect(() => parse(compose(`Connection: ${value}`))).toThrow(MALFORMED);
    },
  );
});

test.for([
  '',
  '\r\n',
  'GET / HTTP/1.1\r\nHost: g\r\n',
  'GET / HTTP/1.1\r\nHost: g\r\nXX',
  'HTTP/1.1 200 OK\r\n',
  'HTTP/1.1 200 OK\r\nXX',
  'HTTP/1.1 200 OK\n\n',
])('an incomplete head is malformed (case %#)', (text) => {
  const bytes = Buffer.from(text);
  expect(() => parseRequestHead(bytes, 0, bytes.length)).toThrow(MALFORMED);
  expect(() => parseResponseHead(bytes, 0, bytes.length, 'GET')).toThrow(MALFORMED);
});

test('a response after others in the same bytes is read by itself', () => {
  const before = 'HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n';
  const read = (text: string) => {
    const bytes = Buffer.from(before + text);
    return parseResponseHead(bytes, before.length, bytes.length, 'GET');
  };
  expect(() => read(response('Transfer-Encoding: chunked\t'))).toThrow(MALFORMED);
  expect(read(response('Transfer-Encoding: chunked', 'X: \ty')).framing).toEqual({ kind: 'chunked' });
});

test('a head must not continue after its empty line', () => {
  const bytes = Buffer.from(`${request()}X-A: b\r\n\r\n`);
  expect(() => parseRequestHead(bytes, 0, bytes.length)).toThrow(MALFORMED);
});

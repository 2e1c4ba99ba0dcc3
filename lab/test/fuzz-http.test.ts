import { describe, expect, test } from 'vitest';
import { runs } from '#testkit/runs.ts';
import { compare } from '../fuzz-http/compare.ts';
import { fuzz, toReport } from '../fuzz-http/fuzz.ts';
import { readWithLlhttp } from '../fuzz-http/read-llhttp.ts';
import type { Input, Side } from '../fuzz-http/read-message.ts';

function toInput(side: Side, text: string, methods: readonly string[] = ['POST']): Input {
  const bytes = Buffer.from(text, 'latin1');
  return { side, bytes, methods, cuts: Array.from({ length: bytes.length }, (_, index) => index + 1) };
}

const NEXT_REQUEST = 'GET / HTTP/1.1\r\nHost: g\r\n\r\n';
const NEXT_RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

// CI runs 100,000 inputs of another seed in a step of its own: npm run fuzz:http.
test('llhttp accepts every accepted message of generated inputs and reads it the same way', () => {
  const inputs = runs(20_000);
  const { counts, finding } = fuzz({ seed: 2, first: 0, inputs });

  expect(finding === null ? '' : toReport(finding)).toBe('');
  expect(counts.accepted).toBeGreaterThan(inputs / 4);
  expect(counts.refused_by_both).toBeGreaterThan(inputs / 10);
});

describe('a message that the fuzzer found is read the same way by both, or rejected', () => {
  const POST = 'POST / HTTP/1.1\r\nHost: g\r\n';
  const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;

  test.for([
    // llhttp treats `chunked` followed by a tab as another coding.
    ['request', `${POST}Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n${NEXT_REQUEST}`, 'refused_by_both'],
    ['response', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked \t\r\n\r\n0\r\n\r\n', 'refused_by_us'],
    // llhttp obeys trailer fields about the connection and the body.
    ['request', `${CHUNKED}0\r\nConnection: close\r\n\r\n${NEXT_REQUEST}`, 'refused_by_us'],
    ['request', `${CHUNKED}0\r\nContent-Length: 5\r\n\r\nhello`, 'refused_by_both'],
    ['request', `${CHUNKED}0\r\nTransfer-Encoding: identity\r\n\r\n`, 'refused_by_both'],
    // A tunnel or another protocol follows, whatever the head says.
    [
      'request',
      `CONNECT g:1 HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\n\r\nhello${NEXT_REQUEST}`,
      'accepted',
    ],
    ['response', `HTTP/1.1 101 Switching Protocols\r\n\r\n${NEXT_RESPONSE}`, 'accepted'],
    // Interim responses have no body, not even those that llhttp does not know.
    ['response', `HTTP/1.1 199 x\r\nTransfer-Encoding: chunked\r\n\r\n${NEXT_RESPONSE}`, 'accepted'],
  ] as const)('%s: %j', ([side, text, verdict]) => {
    expect(compare(toInput(side, text))).toEqual({ verdict, difference: null });
  });
});

describe('llhttp in the fuzzer', () => {
  test('reads successive valid messages', () => {
    const text = `${NEXT_REQUEST}POST /x HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n`;
    const { messages, isRefused } = readWithLlhttp(toInput('request', text));

    expect(isRefused).toBe(false);
    expect(messages).toMatchObject([
      { start: 'GET / 1.1', fields: ['Host', 'g'], body: '', isWhole: true },
      { start: 'POST /x 1.1', body: 'hi', trailers: ['A', 'b'], isWhole: true },
    ]);
  });

  test.for([
    ['request', 'GET / HTTP/1.1\nHost: g\n\n'],
    ['request', 'GET / HTTP/1.1\r\nHost : g\r\n\r\n'],
    ['request', 'GET / HTTP/1.1\r\nX: y\r\n z\r\n\r\n'],
    ['request', 'GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['request', 'GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\nx\r\n0\r\n\r\n'],
    ['request', 'GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx0\r\n\r\n'],
    ['request', `GET / HTTP/1.1\r\nConnection: close\r\n\r\n${NEXT_REQUEST}`],
    ['response', 'HTTP/1.1 200 O\rK\r\n\r\n'],
  ] as const)('is strict: %s %j', ([side, text]) => {
    expect(readWithLlhttp(toInput(side, text)).isRefused).toBe(true);
  });
});

test('a finding is printed so that it can be pasted into a test and reproduced', () => {
  const input = {
    side: 'response',
    bytes: Buffer.from('a\\\'"\r\n\t\0\xff', 'latin1'),
    methods: ['HEAD'],
    cuts: [2, 9],
  };
  const report = toReport({ seed: 3, index: 4, input: input as Input, difference: 'x' });

  expect(report.split('\n')).toEqual([
    'FOUND: x',
    `input:   'a\\\\\\'"\\r\\n\\t\\x00\\xff'`,
    'side:    response to HEAD',
    'cuts:    2, 9',
    'again:   npm run fuzz:http -- --seed 3 --first 4 --inputs 1',
  ]);
});

import { expect, test } from 'vitest';
import { toCollectorMessage, toPartialSuccess } from '#otel/export/otlp-response.ts';

const NONE = { rejectedCount: 0, message: undefined };

test.each([
  { body: '', expected: NONE },
  { body: '{}', expected: NONE },
  { body: '{"partialSuccess":{}}', expected: NONE },
  { body: '{"partialSuccess":null}', expected: NONE },
  { body: '<html>', expected: NONE },
  { body: '[1]', expected: NONE },
  { body: '{"partialSuccess":{"rejectedSpans":"3"}}', expected: { rejectedCount: 3, message: undefined } },
  { body: '{"partialSuccess":{"rejectedSpans":3}}', expected: { rejectedCount: 3, message: undefined } },
  { body: '{"partialSuccess":{"rejectedSpans":"many"}}', expected: NONE },
  { body: '{"partialSuccess":{"rejectedSpans":1e999}}', expected: NONE },
  { body: '{"partialSuccess":{"errorMessage":"old"}}', expected: { rejectedCount: 0, message: 'old' } },
])('the answer $body rejects $expected.rejectedCount', ({ body, expected }) => {
  expect(toPartialSuccess(Buffer.from(body))).toEqual(expected);
});

test('the reason of a refusal is its status message, cut to what fits a log line', () => {
  expect(toCollectorMessage(Buffer.from('{"code":3,"message":"bad span"}'))).toBe('bad span');
  expect(toCollectorMessage(Buffer.from(JSON.stringify({ message: 'x'.repeat(9999) })))).toHaveLength(256);
  expect(toCollectorMessage(Buffer.from('Bad Request'))).toBeUndefined();
  expect(toCollectorMessage(null)).toBeUndefined();
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeMessage } from '#testkit/otlp/otlp-messages.ts';
import { runs } from '#testkit/runs.ts';
import { toCollectorMessage, toPartialSuccess } from '../../../otel/export/collector-answer.ts';

const NONE = { rejectedCount: 0, message: undefined };
const json = (text: string) => ({ type: 'application/json', bytes: Buffer.from(text) });
const protobuf = (bytes: Uint8Array, type = 'application/x-protobuf') => ({
  type,
  bytes: Buffer.from(bytes),
});
const partial = (partialSuccess: object) => encodeMessage('ExportTraceServiceResponse', { partialSuccess });

describe('an answer in JSON', () => {
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
    { body: '{"partialSuccess":{"rejectedSpans":{"toString":1}}}', expected: NONE },
    { body: `{"partialSuccess":{"rejectedSpans":${'['.repeat(9000)}${']'.repeat(9000)}}}`, expected: NONE },
    { body: '{"partialSuccess":{"errorMessage":"old"}}', expected: { rejectedCount: 0, message: 'old' } },
  ])('$body rejects $expected.rejectedCount', ({ body, expected }) => {
    expect(toPartialSuccess(json(body))).toEqual(expected);
  });
});

describe('an answer in protobuf', () => {
  test.each<{ what: string; bytes: Uint8Array; expected: ReturnType<typeof toPartialSuccess> }>([
    { what: 'nothing', bytes: Buffer.alloc(0), expected: NONE },
    { what: 'an empty partial success', bytes: partial({}), expected: NONE },
    {
      what: 'a number',
      bytes: partial({ rejectedSpans: 300 }),
      expected: { rejectedCount: 300, message: undefined },
    },
    {
      what: 'a message',
      bytes: partial({ errorMessage: 'old' }),
      expected: { rejectedCount: 0, message: 'old' },
    },
    {
      what: 'a negative number',
      bytes: partial({ rejectedSpans: -1 }),
      expected: { rejectedCount: -1, message: undefined },
    },
    {
      what: 'more than a number can be',
      bytes: partial({ rejectedSpans: '9223372036854775807' }),
      expected: NONE,
    },
    { what: 'half a message', bytes: partial({ errorMessage: 'old' }).subarray(0, -1), expected: NONE },
    {
      what: 'an endless number',
      bytes: Buffer.from([0x0a, 20, 0x08, ...new Array(19).fill(0xff)]),
      expected: NONE,
    },
    { what: 'a length beyond the end', bytes: Buffer.from([0x0a, 0xff, 0xff, 0xff, 0x7f]), expected: NONE },
    { what: 'a group', bytes: Buffer.from([0x0b, 0x0c]), expected: NONE },
    { what: 'text', bytes: Buffer.from('<html>'), expected: NONE },
  ])('with $what rejects $expected.rejectedCount', ({ bytes, expected }) => {
    expect(toPartialSuccess(protobuf(bytes))).toEqual(expected);
  });

  test('may have fields that are not known, and a type with parameters', () => {
    const unknown = Buffer.from([0x50, 1, 0x59, ...new Array(8).fill(0), 0x5d, 0, 0, 0, 0, 0x7a, 1, 0]);
    const bytes = Buffer.concat([unknown, partial({ rejectedSpans: 2 }), unknown]);
    expect(toPartialSuccess(protobuf(bytes, 'Application/X-Protobuf; charset=utf-8'))).toMatchObject({
      rejectedCount: 2,
    });
  });

  test('may be anything, and is never an error', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(toPartialSuccess(protobuf(bytes)).rejectedCount).toSatisfy(Number.isSafeInteger);
        expect(() => toCollectorMessage(protobuf(bytes))).not.toThrow();
      }),
      { numRuns: runs(1000) },
    );
  });
});

describe('the reason of a rejection', () => {
  test('is the message of its status, at most 256 characters', () => {
    expect(toCollectorMessage(json('{"code":3,"message":"bad span"}'))).toBe('bad span');
    expect(toCollectorMessage(json(JSON.stringify({ message: 'x'.repeat(9999) })))).toHaveLength(256);
    expect(toCollectorMessage(json('Bad Request'))).toBeUndefined();
    expect(toCollectorMessage(json(''))).toBeUndefined();
  });

  test('is read from protobuf as well', () => {
    const status = (message: string) => protobuf(encodeMessage('RpcStatus', { code: 3, message }));
    expect(toCollectorMessage(status('bad span\u0000'))).toBe('bad span');
    expect(toCollectorMessage(status('x'.repeat(9999)))).toHaveLength(256);
    expect(toCollectorMessage(protobuf(Buffer.from('Bad Request')))).toBeUndefined();
  });
});

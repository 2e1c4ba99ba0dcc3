import { describe, expect, test } from 'vitest';
import { HttpError } from '#wire/message';
import { RequestInput } from '../../../src/wire/client/request-input.ts';

const HEAD = 'GET /v1/models HTTP/1.1\r\nHost: g\r\n\r\n';
const MAX_HEAD_BYTES = 64;

function inputOf(...reads: readonly string[]): RequestInput {
  const input = new RequestInput();
  for (const read of reads) input.append(Buffer.from(read, 'latin1'));
  return input;
}

describe('the input of a connection', () => {
  test('reads a head however it is split, and keeps the bytes after it', () => {
    for (let split = 1; split < HEAD.length; split++) {
      const input = inputOf(HEAD.slice(0, split));
      expect(input.readHead(MAX_HEAD_BYTES)).toBeNull();
      input.append(Buffer.from(`${HEAD.slice(split)}${HEAD}body`));
      expect(input.readHead(MAX_HEAD_BYTES)?.target).toBe('/v1/models');
      expect(input.readHead(MAX_HEAD_BYTES)?.target).toBe('/v1/models');
      expect(input.takeAll().toString()).toBe('body');
      expect(input.length).toBe(0);
    }
  });

  test('reads a short head after a long one that came in pieces', () => {
    const input = inputOf('GET /a-long-target-before-a-short-one HTTP/1.1\r\nHost: g\r\n');
    expect(input.readHead(MAX_HEAD_BYTES)).toBeNull();
    input.append(Buffer.from('\r\nGET / HTTP/1.0\r\n\r\n'));
    expect(input.readHead(MAX_HEAD_BYTES)?.target).toBe('/a-long-target-before-a-short-one');
    expect(input.readHead(MAX_HEAD_BYTES)?.target).toBe('/');
  });

  test('rejects a head above the limit, complete or not', () => {
    expect(inputOf(HEAD).readHead(HEAD.length)?.method).toBe('GET');
    expect(() => inputOf(HEAD).readHead(HEAD.length - 1)).toThrow(new HttpError('head_too_large'));
    expect(() => inputOf('GET /'.padEnd(65, 'x')).readHead(64)).toThrow(new HttpError('head_too_large'));
  });

  test('rejects invalid bytes before the head is complete', () => {
    expect(() => inputOf('GET /\0').readHead(MAX_HEAD_BYTES)).toThrow(new HttpError('malformed'));
  });

  test.for([
    ['', true],
    ['\r', true],
    ['\r\n', true],
    ['\n', false],
    ['\r\nG', false],
    ['GE', false],
  ] as const)('distinguishes one CRLF from the beginning of a request: %j', ([text, expected]) => {
    expect(inputOf(text).hasOnlyLineEnd).toBe(expected);
  });
});

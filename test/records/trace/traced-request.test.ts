import { describe, expect, test } from 'vitest';
import { OPERATIONS } from '#otel/record/registry';
import { FULL_RECORD } from '#testkit/records/records.ts';
import { toTracedRequest } from '../../../src/records/trace/traced-request.ts';

describe('a record with token counts', () => {
  test.each([...OPERATIONS.entries()])(
    'of %s, a %s, can be replayed if it generates text',
    (endpoint, operation) => {
      const record = { ...FULL_RECORD, endpoint, prompt_tokens: 5, completion_tokens: 0 };
      const canBeReplayed = operation === 'chat' || operation === 'text_completion';
      expect(toTracedRequest(record) !== null).toBe(canBeReplayed);
    },
  );

  test.each(['', '0011', '00112233AABBCCDD', '00112233aabbccdx', '\u0130\u0130112233aabbccdd'])(
    'has no hashes if one of them is %j',
    (hash) => {
      const hashesOf = (...prefix_hashes: string[]) =>
        toTracedRequest({ ...FULL_RECORD, prefix_hashes })?.hashes.toString('hex');
      expect(hashesOf('00112233aabbccdd', hash)).toBe('');
      expect(hashesOf('00112233aabbccdd')).toBe('00112233aabbccdd');
    },
  );

  test('of an endpoint that is not known cannot', () => {
    expect(toTracedRequest({ ...FULL_RECORD, endpoint: '__proto__' })).toBeNull();
  });
});

import { describe, expect, test } from 'vitest';
import { OPERATIONS } from '../../../otel/encode/operations.ts';
import { findRecordedEndpoint, RECORDED_ENDPOINTS } from '../../../src/proxy/endpoints/table.ts';

describe('the recorded endpoints', () => {
  test('each have a path of their own and an operation name', () => {
    const paths = RECORDED_ENDPOINTS.map(({ path }) => path);
    expect(new Set(paths).size).toBe(paths.length);
    expect([...OPERATIONS.keys()].toSorted()).toEqual(paths.toSorted());
  });

  test.each(['/v1/models', '/v1', '/v1/chat/completions/', '//v1/completions', 'constructor', ''])(
    'do not include %j',
    (path) => {
      expect(findRecordedEndpoint(path)).toBeUndefined();
    },
  );
});

import { describe, expect, test } from 'vitest';
import { OPERATIONS } from '#otel/record/registry';
import {
  endpointsByPath,
  findRecordedEndpoint,
  RECORDED_ENDPOINTS,
} from '../../../src/proxy/endpoints/table.ts';

describe('the recorded endpoints', () => {
  test('each have a path of their own and an operation name', () => {
    const paths = RECORDED_ENDPOINTS.map(({ path }) => path);
    expect(new Set(paths).size).toBe(paths.length);
    expect([...OPERATIONS.keys()].toSorted()).toEqual(paths.toSorted());
  });

  test('are those of the contract, unless the configuration switches on more', () => {
    const basic = ['/v1/chat/completions', '/v1/completions', '/v1/embeddings'];
    expect([...endpointsByPath([]).keys()]).toEqual(basic);
    expect([...endpointsByPath(['messages']).keys()]).toEqual([
      ...basic,
      '/v1/messages',
      '/v1/messages/count_tokens',
    ]);
    expect([...endpointsByPath(['responses']).keys()]).toEqual([...basic, '/v1/responses']);
  });

  test.each(['/v1/models', '/v1', '/v1/chat/completions/', '//v1/completions', 'constructor', ''])(
    'do not include %j',
    (path) => {
      expect(findRecordedEndpoint(path)).toBeUndefined();
    },
  );
});

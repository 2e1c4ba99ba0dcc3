import { expect, test } from 'vitest';
import { BASIC_PATHS, PATHS_OF_ENDPOINT } from '../../../src/config/schema/endpoint-paths.ts';
import { endpointsByPath } from '../../../src/proxy/endpoints/table.ts';

test('the check of pass knows every path that is recorded', () => {
  expect([...endpointsByPath([]).keys()]).toEqual(BASIC_PATHS);
  for (const name of Object.keys(PATHS_OF_ENDPOINT) as (keyof typeof PATHS_OF_ENDPOINT)[]) {
    expect([...endpointsByPath([name]).keys()]).toEqual([...BASIC_PATHS, ...PATHS_OF_ENDPOINT[name]]);
  }
});

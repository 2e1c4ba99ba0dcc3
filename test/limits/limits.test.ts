import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '#testkit/limits/limits.ts';
import { readValue } from '#testkit/limits/value.ts';
import { Gateways } from '#testkit/limits/world.ts';

/** The rows that are tried here. The others name the test that tries them: see test/house/limits.test.ts. */
const GROUPS = LIMITS.map(({ group, limits }) => ({
  group,
  rows: limits.flatMap(({ what, source, proof }) =>
    'send' in proof ? [{ what, source, probe: proof }] : [],
  ),
})).filter(({ rows }) => rows.length > 0);

let gateways: Gateways;

beforeAll(() => {
  gateways = new Gateways();
});

afterAll(() => gateways[Symbol.asyncDispose]());

describe.each(GROUPS)('$group', ({ rows }) => {
  test.for(rows)('$what: holds at the limit, and one past it', async ({ source, probe }) => {
    const { limit = readValue(source), send, at, past } = probe;
    expect({ at: await send(limit, gateways), past: await send(limit + 1, gateways) }).toEqual({ at, past });
    const statuses = await gateways.nextStatuses();
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
  });
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../lab/limits/limits.ts';
import { readValue } from '../../lab/limits/value.ts';
import { Gateways } from '../../lab/limits/world.ts';

const ROOT = join(import.meta.dirname, '../..');

let gateways: Gateways;

beforeAll(() => {
  gateways = new Gateways();
});

afterAll(() => gateways[Symbol.asyncDispose]());

describe.each(LIMITS)('$group', ({ limits }) => {
  test.for(limits)('$what: holds at the limit, and one past it', async ({ source, proof }) => {
    const value = readValue(source);
    if ('test' in proof) {
      expect(readFileSync(join(ROOT, proof.test), 'utf8')).toContain(proof.name);
      return;
    }
    const { limit = value, send, at, past } = proof;
    expect({ at: await send(limit, gateways), past: await send(limit + 1, gateways) }).toEqual({ at, past });
    const statuses = await gateways.nextStatuses();
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
  });
});

import { describe, expect, test } from 'vitest';
import { type FuzzInput, type FuzzTarget, must } from '../../lab/fuzz/fuzz-target.ts';
import { runTarget, toInput, tryInput, tryMemory } from '../../lab/fuzz/run-target.ts';
import { TARGETS } from '../../lab/fuzz/targets/targets.ts';

/** A reader with a fault: it fails for a text that has an x before a y, and was cut. */
const FAULTY: FuzzTarget = {
  ...{ name: 'faulty', reads: '', oracle: '', variants: 2, ciInputs: 0 },
  generate: (random) => Buffer.from(random.text('abcxy', 40)),
  check({ bytes, cuts }) {
    must(cuts.length === 0 || !/x.*y/.test(bytes.toString('latin1')), 'x before y');
    return true;
  },
  read: () => null,
};

test('an input that is read wrongly is found, made as small as it can be, and found again by its index', async () => {
  const { finding } = await runTarget(FAULTY, { seed: 3, first: 0, inputs: 10_000 });
  expect(finding?.smallest.bytes.toString()).toBe('xy');
  expect(finding?.smallest.cuts).toHaveLength(1);
  expect(finding?.reason).toContain('x before y');
  const again = toInput(FAULTY, 3, finding?.index ?? 0);
  expect(again).toEqual(finding?.input);
  expect(await tryInput(FAULTY, again)).toContain('x before y');
});

describe('a reader of a hundred bytes is found that', () => {
  const held: unknown[] = [];
  const ofLengths = (read: FuzzTarget['read']): FuzzTarget => ({
    ...{ ...FAULTY, variants: 1, generate: () => Buffer.alloc(100, 'a'), check: () => true },
    read,
  });

  test.each<[string, FuzzTarget['read'], RegExp]>([
    ['keeps a megabyte of them', () => Buffer.alloc(1 << 20), /keeps \d{7} bytes of an input of/],
    ['keeps a million values', () => Array.from({ length: 1 << 20 }, Math.random), /keeps \d+ bytes of/],
    ['allocates 16 MiB, and gives them back', () => Array(1 << 21).fill(0).length, /allocates \d{8} bytes/],
    [
      'takes memory with the square of the length',
      ({ bytes }) => Buffer.alloc(bytes.length ** 2 / 8),
      /keeps/,
    ],
  ])(
    '%s',
    async (_, read, reason) => {
      const { finding } = await runTarget(ofLengths(read), { seed: 1, first: 0, inputs: 1_000 });
      expect(finding?.reason).toMatch(reason);
      expect(await tryMemory(ofLengths(read), finding?.smallest as FuzzInput)).toMatch(reason);
    },
    60_000,
  );

  test('keeps something of each batch', async () => {
    const { finding } = await runTarget(
      ofLengths(() => held.push(Buffer.alloc(400_000))),
      { seed: 1, first: 0, inputs: 40_000 },
    );
    held.length = 0;
    expect(finding?.reason).toMatch(/\d{8} bytes have stayed since the first batch/);
  }, 60_000);
});

// CI gives each target more inputs in a step of its own: npm run fuzz.
describe('a few hundred inputs are read rightly, and not all of them are refused, by', () => {
  test.each(TARGETS.map((target) => [target.name, target] as const))(
    '%s',
    async (_, target) => {
      const { finding, accepted } = await runTarget(target, { seed: 7, first: 0, inputs: 200 });
      expect(finding?.reason).toBeUndefined();
      expect(accepted).toBeGreaterThan(10);
    },
    60_000,
  );
});

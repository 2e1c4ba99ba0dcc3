import { describe, expect, test } from 'vitest';
import { type FuzzTarget, must } from '../../lab/fuzz/fuzz-target.ts';
import { runTarget, toInput, tryInput } from '../../lab/fuzz/run-target.ts';
import { TARGETS } from '../../lab/fuzz/targets/targets.ts';

/** A reader with a fault: it fails for a text that has an x before a y, and was cut. */
const FAULTY: FuzzTarget = {
  ...{ name: 'faulty', reads: '', oracle: '', variants: 2, ciInputs: 0 },
  generate: (random) => Buffer.from(random.text('abcxy', 40)),
  check({ bytes, cuts }) {
    must(cuts.length === 0 || !/x.*y/.test(bytes.toString('latin1')), 'x before y');
    return true;
  },
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

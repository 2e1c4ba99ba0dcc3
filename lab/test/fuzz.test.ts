import { describe, expect, test } from 'vitest';
import { type FuzzInput, type FuzzTarget, must } from '../fuzz/fuzz-target.ts';
import { type Piece, runTarget, toInput, tryInput, tryMemory } from '../fuzz/run-target.ts';
import { TARGETS } from '../fuzz/targets/targets.ts';

/** A reader with a fault: it fails for a text that has an x before a y, and was cut. */
const FAULTY: FuzzTarget = {
  name: 'faulty',
  reads: '',
  oracle: '',
  variants: 2,
  ciInputs: 0,
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

describe('of a hundred bytes, a reader is found that', () => {
  const input: FuzzInput = { bytes: Buffer.alloc(100, 'a'), cuts: [], variant: 0 };

  test.each<[string, FuzzTarget['read'], RegExp]>([
    ['keeps a megabyte', () => Buffer.alloc(1 << 20), /^keeps \d{6,7} bytes of an input of 100$/],
    ['keeps many values', () => Array.from({ length: 1 << 17 }, Math.random), /^keeps \d{6,7} bytes/],
    ['takes 16 MiB, and gives them back', () => Array(1 << 21).fill(0).length, /^allocates \d{8} bytes/],
  ])('%s', async (_, read, reason) => {
    expect(await tryMemory({ ...FAULTY, read }, input)).toMatch(reason);
  });

  test('keeps a little of each', async () => {
    const held: Buffer[] = [];
    const check = () => held.push(Buffer.alloc(20_000)) > 0;
    const result = await runTarget(
      { ...FAULTY, check },
      { seed: 1, first: 0, inputs: 3_000 },
      { batchInputs: 1_000 },
    );
    expect(result.finding?.reason).toMatch(/^\d{8} bytes have stayed since the first batch$/);
    expect(result.inputs).toBe(2_000);
    expect(held).toHaveLength(2_000);
  }, 180_000);
});

test('a run tells of each whole piece, so that one that is cut off has figures', async () => {
  const pieces: Piece[] = [];
  const check: FuzzTarget['check'] = ({ variant }) => variant === 0;
  const onPiece = (piece: Piece) => pieces.push(piece);
  const range = { seed: 1, first: 5, inputs: 70 };
  const { finding, ...total } = await runTarget({ ...FAULTY, check }, range, { batchInputs: 30, onPiece });
  expect(finding).toBeNull();
  expect(pieces.map(({ first, inputs, measured }) => [first, inputs, measured])).toEqual([
    [5, 30, 2],
    [35, 30, 2],
    [65, 10, 2],
  ]);
  expect(pieces.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(total.accepted);
  expect(total).toMatchObject({ first: 5, inputs: 70, measured: 6 });
});

test('the longest input of a run, and one made longer, are read with memory measured', async () => {
  const lengths: number[] = [];
  const read: FuzzTarget['read'] = ({ bytes }) => lengths.push(bytes.length);
  const check = () => true;
  const result = await runTarget({ ...FAULTY, check, read }, { seed: 1, first: 0, inputs: 50 });
  expect(result).toMatchObject({ measured: 2, finding: null });
  const all = Array.from({ length: 50 }, (_, index) => toInput(FAULTY, 1, index).bytes.length);
  expect(lengths[0]).toBe(Math.max(...all));
  expect(lengths.at(-1)).toBeGreaterThan(Math.max(...all));
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
    300_000,
  );
});

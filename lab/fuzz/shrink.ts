import type { FuzzInput } from './fuzz-target.ts';

/** Attempts to make a failing input smaller. */
const MAX_STEPS = 3_000;

/** Takes away cuts and runs of bytes for as long as the input still fails. */
export async function shrink(
  failing: FuzzInput,
  fails: (candidate: FuzzInput) => Promise<boolean>,
): Promise<FuzzInput> {
  let smallest = failing;
  let stepsLeft = MAX_STEPS;
  const use = async (candidate: FuzzInput): Promise<boolean> => {
    if (stepsLeft-- <= 0 || !(await fails(candidate))) return false;
    smallest = candidate;
    return true;
  };
  await use({ ...smallest, cuts: [] });
  for (let size = Math.ceil(smallest.bytes.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < smallest.bytes.length; ) {
      if (!(await use(without(smallest, at, Math.min(at + size, smallest.bytes.length))))) at += size;
    }
  }
  for (const cut of smallest.cuts) {
    await use({ ...smallest, cuts: smallest.cuts.filter((each) => each !== cut) });
  }
  return smallest;
}

function without({ bytes, cuts, variant }: FuzzInput, start: number, end: number): FuzzInput {
  const last = bytes.length - (end - start) - 1;
  const moved = cuts.map((cut) => Math.min(last, cut >= end ? cut - (end - start) : Math.min(cut, start)));
  const kept = [...new Set(moved)].filter((cut) => cut > 0);
  return { bytes: Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]), cuts: kept, variant };
}

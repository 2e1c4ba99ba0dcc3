import { Random } from '../fuzz-http/random.ts';
import type { FuzzInput, FuzzTarget } from './fuzz-target.ts';
import { cutsOf, damage } from './generate.ts';

/** Reading one input may take this long, in CPU time: far more than any needs, and far less than a hang. */
const MAX_CHECK_MS = 2_000;
/** Attempts to make a failing input smaller. */
const MAX_SHRINK_STEPS = 3_000;

/** An input that was not read rightly. */
export interface Finding {
  readonly target: FuzzTarget;
  readonly seed: number;
  readonly index: number;
  readonly input: FuzzInput;
  /** The same failure with fewer bytes and cuts. */
  readonly smallest: FuzzInput;
  readonly reason: string;
}

/** What a run of a target has given. */
export interface TargetResult {
  readonly inputs: number;
  readonly accepted: number;
  readonly finding: Finding | null;
}

/** The input with this index: the same for the same seed on every machine. */
export function toInput(target: FuzzTarget, seed: number, index: number): FuzzInput {
  const random = new Random(seed, index);
  const variant = random.below(target.variants);
  const whole = target.generate(random, variant);
  const bytes = random.chance(50) ? damage(random, whole) : whole;
  return { bytes, cuts: cutsOf(random, bytes.length), variant };
}

/** Gives a target the inputs `[first, first + inputs)` of a seed. Stops at the first finding. */
export async function runTarget(
  target: FuzzTarget,
  { seed, first, inputs }: { readonly seed: number; readonly first: number; readonly inputs: number },
  onProgress: (done: number) => void = () => undefined,
): Promise<TargetResult> {
  let accepted = 0;
  for (let index = first; index < first + inputs; index++) {
    const input = toInput(target, seed, index);
    const outcome = await tryInput(target, input);
    if (typeof outcome === 'string') {
      const smallest = await shrink(target, input);
      const reason = await tryInput(target, smallest);
      return {
        inputs: index - first + 1,
        accepted,
        finding: { target, seed, index, input, smallest, reason: String(reason) },
      };
    }
    if (outcome) accepted++;
    onProgress(index - first + 1);
  }
  return { inputs, accepted, finding: null };
}

/** Whether the input was accepted; a text: what is wrong. */
export async function tryInput(target: FuzzTarget, input: FuzzInput): Promise<boolean | string> {
  const before = process.cpuUsage();
  try {
    const checked = target.check(input);
    const isAccepted = typeof checked === 'boolean' ? checked : await checked;
    const spent = process.cpuUsage(before);
    const ms = (spent.user + spent.system) / 1000;
    return ms > MAX_CHECK_MS ? `took ${Math.round(ms)} ms of CPU time` : isAccepted;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}

/** Takes away cuts and runs of bytes for as long as the input still fails. */
async function shrink(target: FuzzTarget, failing: FuzzInput): Promise<FuzzInput> {
  let smallest = failing;
  let stepsLeft = MAX_SHRINK_STEPS;
  const use = async (candidate: FuzzInput): Promise<boolean> => {
    if (stepsLeft-- <= 0 || typeof (await tryInput(target, candidate)) === 'boolean') return false;
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

import { Random } from '../fuzz-http/random.ts';
import type { FuzzInput, FuzzTarget } from './fuzz-target.ts';
import { cutsOf, damage, lengthen } from './generate.ts';
import { GrowthWatch, judgeMemory, measureRead } from './memory.ts';
import { shrink } from './shrink.ts';

/** Reading one input may take this long, in CPU time: far more than any needs, and far less than a hang. */
const MAX_CHECK_MS = 2_000;
/**
 * After so many inputs, memory is measured: with the longest of them, and with it made longer still. Collecting the garbage
 * for it takes as long as hundreds of inputs.
 */
const BATCH_INPUTS = 10_000;

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

/** What some inputs of a target have given: those from the index `first`. */
export interface Piece {
  readonly first: number;
  readonly inputs: number;
  readonly accepted: number;
  /** Of how many inputs the memory was measured. */
  readonly measured: number;
}

/** What a run of a target has given. */
export interface TargetResult extends Piece {
  readonly finding: Finding | null;
}

/** How a run is watched. */
export interface RunOptions {
  /** The inputs of a piece. */
  readonly batchInputs?: number;
  /** Is told of each piece that is whole. */
  readonly onPiece?: (piece: Piece) => void;
}

/** Which inputs of a seed. */
export interface InputRange {
  readonly seed: number;
  readonly first: number;
  readonly inputs: number;
}

/** The input with this index: the same for the same seed on every machine. */
export function toInput(target: FuzzTarget, seed: number, index: number): FuzzInput {
  const random = new Random(seed, index);
  const variant = random.below(target.variants);
  const whole = target.generate(random, variant);
  const bytes = random.chance(50) ? damage(random, whole) : whole;
  return { bytes, cuts: cutsOf(random, bytes.length), variant };
}

/** The same input, made longer. */
function toLongInput(target: FuzzTarget, seed: number, index: number): FuzzInput {
  const random = new Random(~seed, index);
  const { bytes, variant } = toInput(target, seed, index);
  const long = lengthen(random, bytes);
  return { bytes: long, cuts: cutsOf(random, long.length), variant };
}

/** Gives a target the inputs `[first, first + inputs)` of a seed. Stops at the first finding. */
export async function runTarget(
  target: FuzzTarget,
  { seed, first, inputs }: InputRange,
  { batchInputs = BATCH_INPUTS, onPiece = () => undefined }: RunOptions = {},
): Promise<TargetResult> {
  const growth = new GrowthWatch();
  const total = { first, inputs: 0, accepted: 0, measured: 0 };
  let begin = { ...total };
  let longest = { index: first, length: -1 };
  const fail = (finding: Finding) => ({ ...total, finding });
  for (let index = first; index < first + inputs; index++) {
    const input = toInput(target, seed, index);
    const outcome = await tryInput(target, input);
    total.inputs++;
    if (typeof outcome === 'string') return fail(await toFinding(target, { seed, index, input }, tryInput));
    if (outcome) total.accepted++;
    if (input.bytes.length > longest.length) longest = { index, length: input.bytes.length };
    if (total.inputs % batchInputs !== 0 && total.inputs < inputs) continue;
    for (const toCandidate of [toInput, toLongInput]) {
      const candidate = toCandidate(target, seed, longest.index);
      total.measured++;
      if (typeof (await tryMemory(target, candidate)) === 'boolean') continue;
      const place = { seed, index: longest.index, input: candidate };
      return fail(await toFinding(target, place, tryMemory));
    }
    const reason = growth.afterBatch();
    if (reason !== null) return fail({ target, seed, index, input, smallest: input, reason });
    longest = { index: index + 1, length: -1 };
    onPiece({
      first: first + begin.inputs,
      inputs: total.inputs - begin.inputs,
      accepted: total.accepted - begin.accepted,
      measured: total.measured - begin.measured,
    });
    begin = { ...total };
  }
  return { ...total, finding: null };
}

async function toFinding(
  target: FuzzTarget,
  place: Pick<Finding, 'seed' | 'index' | 'input'>,
  attempt: typeof tryInput,
): Promise<Finding> {
  const smallest = await shrink(
    place.input,
    async (candidate) => typeof (await attempt(target, candidate)) === 'string',
  );
  return { target, ...place, smallest, reason: String(await attempt(target, smallest)) };
}

/** Whether the input was accepted; a text: what is wrong. */
export async function tryInput(target: FuzzTarget, input: FuzzInput): Promise<boolean | string> {
  return await inTime(async () => {
    const checked = target.check(input);
    return typeof checked === 'boolean' ? checked : await checked;
  });
}

/** True; a text: reading the input takes too much memory, or too long. */
export async function tryMemory(target: FuzzTarget, input: FuzzInput): Promise<boolean | string> {
  return await inTime(async () => judgeMemory(await measureRead(target, input), input.bytes.length) ?? true);
}

async function inTime(attempt: () => Promise<boolean | string>): Promise<boolean | string> {
  const startedMs = performance.now();
  const outcome = await toOutcome(attempt);
  // Asking for the CPU time takes longer than many inputs do, and it is no more than has passed.
  if (performance.now() - startedMs <= MAX_CHECK_MS) return outcome;
  const before = process.cpuUsage();
  const again = await toOutcome(attempt);
  const { user, system } = process.cpuUsage(before);
  const ms = (user + system) / 1000;
  return ms > MAX_CHECK_MS ? `took ${Math.round(ms)} ms of CPU time` : again;
}

async function toOutcome(attempt: () => Promise<boolean | string>): Promise<boolean | string> {
  try {
    return await attempt();
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}

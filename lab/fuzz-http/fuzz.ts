import { type Comparison, compare } from './compare.ts';
import { generateInput } from './generate.ts';
import type { Input } from './read-message.ts';

/** An input that the two parsers read differently. */
export interface Finding {
  readonly seed: number;
  readonly index: number;
  readonly input: Input;
  readonly difference: string;
}

/** The number of inputs by verdict, up to the first finding. */
export interface FuzzResult {
  readonly counts: Readonly<Record<Comparison['verdict'], number>>;
  readonly finding: Finding | null;
}

/** Compares the parsers on the inputs `[first, first + inputs)` of a seed; stops at the first finding. */
export function fuzz({ seed, first, inputs }: { seed: number; first: number; inputs: number }): FuzzResult {
  const counts = { accepted: 0, refused_by_us: 0, refused_by_both: 0, incomplete: 0 };
  for (let index = first; index < first + inputs; index++) {
    const input = generateInput(seed, index);
    const { verdict, difference } = compareSafely(input);
    if (difference !== null) return { counts, finding: { seed, index, input, difference } };
    counts[verdict]++;
  }
  return { counts, finding: null };
}

/** Reports an exception other than a refusal as a finding. */
function compareSafely(input: Input): Comparison {
  try {
    return compare(input);
  } catch (error) {
    return {
      verdict: 'incomplete',
      difference: error instanceof Error ? (error.stack ?? error.message) : String(error),
    };
  }
}

/** The text of a finding, with the bytes escaped for a test. */
export function toReport({ seed, index, input, difference }: Finding): string {
  const { side, bytes, methods, cuts } = input;
  return [
    `FOUND: ${difference}`,
    `input:   ${toLiteral(bytes)}`,
    `side:    ${side}${side === 'response' ? ` to ${methods.join(', ')}` : ''}`,
    `cuts:    ${cuts.length === bytes.length ? 'every byte' : cuts.join(', ')}`,
    `again:   npm run fuzz:http -- --seed ${seed} --first ${index} --inputs 1`,
  ].join('\n');
}

/** Bytes as a string literal of JavaScript, one character each. */
function toLiteral(bytes: Buffer): string {
  const escaped = bytes.toString('latin1').replace(/[\\'\r\n\t]|[^ -~]/g, (character) => {
    const short = SHORT_ESCAPES.get(character);
    return short ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
  return `'${escaped}'`;
}

const SHORT_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\\', '\\\\'],
  ["'", "\\'"],
  ['\r', '\\r'],
  ['\n', '\\n'],
  ['\t', '\\t'],
]);

import { startProgram, toCount } from '#testkit/programs/program.ts';
import { replaceBetween } from '#testkit/programs/results.ts';
import { percentile } from '#testkit/programs/statistics.ts';
import { toLongRandom } from '#testkit/random.ts';
import {
  createPairs,
  EQUAL_PAIRS,
  type PairScenario,
  type SimulatedPair,
} from '#testkit/verdict/simulate-pairs.ts';
import { GroupComparison } from '#verdict';
import type { Observation } from '#verdict/blocks';
import { PairedComparison, type PairObservation } from '#verdict/pairs';

const USAGE = `npm run lab -- measure/pairs [--pairs N] [--bad N] [--write]
  Simulates shadows, and judges each by its pairs with the code of the gateway.
  --pairs   pairs of shadows that are like their primaries, in all (default 1000000): a thousand for each shadow
  --bad     bad shadows of each kind (default 100)
  --write   writes the figures into docs/evidence/shadow.md
  Exits with 1 if more than 1 in 1,000 equal shadows are called bad, if a bad one is not found, or if a slow-down of 5 % takes
  more than a fifth of the requests that it takes without pairs.`;

const FALSE_ALARM = 1 / 1_000;
const MISSED = 0.05;
/** Both comparisons take a slow-down of 1 % for harmless. */
const TOLERANCE = 1.01;
/** Five pairs per second, four blocks of two seconds in eight. */
const BLOCK = 10;
const PAIRS_OF_ONE = 1_000;
const MOST = 100_000;

const BAD: readonly (readonly [title: string, changes: Partial<PairScenario>])[] = [
  ['5 % slower', { slowness: 1.05 }],
  ['20 % slower', { slowness: 1.2 }],
  ['fails 5 % of its answers', { errorShare: 0.05 }],
  ['ends 5 % of its answers half-way', { truncatedShare: 0.05 }],
  ['misses its stop token in 5 % of its answers', { unstoppedShare: 0.05 }],
  ['has other weights: 80 % of outputs differ', { changedShare: 0.8 }],
  ['is quantized: 1 % of outputs differ', { changedShare: 0.01, inexactShare: 0 }],
  ['the same, while 2 % differ by chance', { changedShare: 0.01 }],
];

const options = startProgram(USAGE, {
  pairs: { type: 'string', default: '1000000' },
  bad: { type: 'string', default: '100' },
  write: { type: 'boolean', default: false },
});
const count = toCount(options.bad);
const equal = measureEqual(Math.ceil(toCount(options.pairs) / PAIRS_OF_ONE));
const planted = BAD.map(([title, changes]) => measureBad(title, { ...EQUAL_PAIRS, ...changes }, count));
const shares = [0.95, 0.9, 0.8].map((commonShare) => compareWithUnpaired(commonShare, Math.min(20, count)));
const report = [
  `| Shadows that | Number | bad | pairs until then: the median, and 95 % |`,
  '|---|---:|---:|---:|',
  equal.line,
  ...planted.map(({ line }) => line),
  '',
  "| The variance that is the request's own | 5 % slower: pairs | without pairs: requests of the candidate | of that |",
  '|---:|---:|---:|---:|',
  ...shares.map(({ line }) => line),
].join('\n');
console.log(report);
if (options.write)
  replaceBetween('docs/evidence/shadow.md', '<!-- measured: measure/pairs -->', '<!-- end -->', report);
const isRight =
  equal.bad <= Math.max(1, FALSE_ALARM * equal.shadows) &&
  planted.every(({ found }) => found >= 0.95 * count) &&
  (shares[1]?.ratio ?? 1) <= 0.2;
process.exitCode = isRight ? 0 : 1;

/** Judges a shadow until it is bad, or until there are so many pairs. Returns how many that took; null: it is not bad. */
function untilBad(next: () => PairObservation, most: number): number | null {
  const comparison = new PairedComparison(TOLERANCE);
  while (comparison.pairs < most) {
    comparison.addBlock(Array.from({ length: BLOCK }, next));
    if (comparison.judge({ falseAlarm: FALSE_ALARM, missed: MISSED }).kind === 'bad') return comparison.pairs;
  }
  return null;
}

function measureEqual(shadows: number) {
  let bad = 0;
  for (let seed = 0; seed < shadows; seed++) {
    const isExact = seed % 2 === 0;
    const scenario = {
      ...EQUAL_PAIRS,
      inexactShare: isExact ? 0 : 0.2,
      commonShare: seed % 4 < 2 ? 0.9 : 0.5,
    };
    if (untilBad(createPairs(scenario, toLongRandom(seed)), PAIRS_OF_ONE) !== null) bad++;
  }
  const line = `| are like their primaries, ${PAIRS_OF_ONE.toLocaleString('en')} pairs each | ${shadows.toLocaleString('en')} | ${bad} | |`;
  return { shadows, bad, line };
}

function measureBad(title: string, scenario: PairScenario, shadows: number) {
  const taken = Array.from({ length: shadows }, (_, seed) =>
    untilBad(createPairs(scenario, toLongRandom(10_000 + seed)), MOST),
  ).filter((pairs) => pairs !== null);
  const line = `| ${title} | ${shadows} | ${taken.length} | ${spread(taken)} |`;
  return { found: taken.length, line };
}

/** How many requests of a candidate that is 5 % slower it takes in pairs, and otherwise beside three peers. */
function compareWithUnpaired(commonShare: number, runs: number) {
  const scenario = { ...EQUAL_PAIRS, commonShare, slowness: 1.05 };
  const paired: number[] = [];
  const unpaired: number[] = [];
  for (let seed = 0; seed < runs; seed++) {
    paired.push(untilBad(createPairs(scenario, toLongRandom(seed)), MOST) ?? MOST);
    unpaired.push(untilBadUnpaired(scenario, seed));
  }
  const ratio = percentile(paired, 0.5) / percentile(unpaired, 0.5);
  const line = `| ${commonShare * 100} % | ${spread(paired)} | ${spread(unpaired)} | ${(100 * ratio).toFixed(0)} % |`;
  return { ratio, line };
}

function untilBadUnpaired(scenario: PairScenario, seed: number): number {
  const comparison = new GroupComparison();
  const next = createPairs(scenario, toLongRandom(seed));
  while (comparison.requests < MOST) {
    const own = Array.from({ length: 100 }, () => toObservation(next(), 'own'));
    const peers = Array.from({ length: 300 }, () => toObservation(next(), 'peer'));
    comparison.addBlock({ own, peers }, { comparesTimes: true, harmlessSlowness: TOLERANCE });
    const { kind } = comparison.judge({ falseAlarm: FALSE_ALARM, missed: MISSED, sharesPrompts: true });
    if (kind === 'bad') return comparison.requests;
  }
  return MOST;
}

/** One answer alone. Like requests are told by the prompt, which the time to the first token follows from. */
function toObservation(pair: SimulatedPair, side: 'own' | 'peer'): Observation {
  const { outcome, firstTokenMs, gapMs, durationMs, completionTokens, finish } = pair[side];
  return {
    replica: side,
    model: pair.model,
    endpoint: pair.endpoint,
    stream: pair.stream,
    cachedTokens: null,
    promptTokens: pair.promptTokens,
    maxTokens: 1_024,
    ttftMs: firstTokenMs,
    gapMs,
    e2eMs: durationMs,
    outcome,
    completionTokens,
    finish,
  };
}

function spread(values: readonly number[]): string {
  if (values.length === 0) return '–';
  const of = (share: number) => Math.round(percentile(values, share)).toLocaleString('en');
  return `${of(0.5)}, ${of(0.95)}`;
}

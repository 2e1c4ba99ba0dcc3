import { setImmediate } from 'node:timers/promises';
import type { Tell } from '#testkit/programs/progress.ts';
import { percentile } from '#testkit/programs/statistics.ts';
import { toRandom } from '#testkit/random.ts';
import { runVerdict, type SimulatedEnd } from '#testkit/verdict/run-verdict.ts';
import { EQUAL_REPLICAS, PLAIN, type Scenario } from '#testkit/verdict/workload.ts';

/** Workloads of one kind, and the verdict that they should get. */
interface Kind {
  readonly title: string;
  readonly scenario: Scenario;
  readonly expected: 'good' | 'bad';
}

/** The verdicts of one kind of workload. */
export interface KindReport extends Kind {
  readonly count: number;
  readonly bad: number;
  readonly good: number;
  /** After the ramp: the median, and what 95 % need. */
  readonly seconds: readonly [median: number, most: number];
  readonly requests: readonly [median: number, most: number];
}

const ALL_AT_ONCE = EQUAL_REPLICAS.at(-1)?.[1] ?? PLAIN;

/** What is judged with the seeds 1, 2, …. */
export const SEEDED_KINDS: readonly Kind[] = [
  { title: 'equal replicas', scenario: PLAIN, expected: 'good' },
  { title: 'equal replicas, everything at once', scenario: ALL_AT_ONCE, expected: 'good' },
  { title: '20 % slower', scenario: { ...PLAIN, slowness: 1.2 }, expected: 'bad' },
  { title: '20 % slower, everything at once', scenario: { ...ALL_AT_ONCE, slowness: 1.2 }, expected: 'bad' },
  { title: 'fails 5 % of its requests', scenario: { ...PLAIN, errorShare: 0.05 }, expected: 'bad' },
];

const SETTINGS = { falseAlarm: 1 / 1_000, blockS: 2, maxSeconds: 600, ignoresGood: false } as const;

/** Judges this many workloads of a kind with the code of `gateway rollout`. */
export async function judgeSeeds(kind: Kind, count: number, tell: Tell): Promise<KindReport> {
  const ends: SimulatedEnd[] = [];
  for (let seed = 1; seed <= count; seed++) {
    ends.push(runVerdict(kind.scenario, toRandom(seed), SETTINGS));
    if (seed % 10 === 0) tell(`${seed} of ${count} seeds`);
    await setImmediate();
  }
  const spread = (values: readonly number[]) => [percentile(values, 0.5), percentile(values, 0.95)] as const;
  return {
    ...kind,
    count,
    bad: ends.filter((end) => end.kind === 'bad').length,
    good: ends.filter((end) => end.kind === 'good').length,
    seconds: spread(ends.map(({ seconds }) => seconds)),
    requests: spread(ends.map(({ requests }) => requests)),
  };
}

/** Whether at most 1 in 1,000 equal replicas are called bad, or at least 95 % of the bad ones. */
export function isKindRight({ expected, bad, count }: KindReport): boolean {
  return expected === 'good' ? bad <= SETTINGS.falseAlarm * count : bad >= 0.95 * count;
}

import { startProgram, toCount } from '#testkit/programs/program.ts';
import { percentile } from '#testkit/programs/statistics.ts';
import { toRandom } from '#testkit/random.ts';
import { runVerdict, type SimulatedEnd, type SimulationSettings } from '#testkit/verdict/run-verdict.ts';
import { EQUAL_REPLICAS, PLAIN, type Scenario } from '#testkit/verdict/workload.ts';

const USAGE = `npm run lab -- measure/verdict [--rollouts N] [--slow N] [--watched N]
  Simulates rollouts of one replica beside three peers, and judges each with the code of gateway rollout.
  --rollouts   rollouts of replicas that are equal, over all kinds of load together (default 21000)
  --slow       rollouts of each kind of bad replica (default 500)
  --watched    rollouts of each kind of load that go on for three minutes although the replica is good (default 300)
  Exits with 1 if more than 1 in 1,000 equal replicas are called bad, or fewer than 95 % of the bad ones.`;

const FALSE_ALARM = 1 / 1_000;
const POWER = 0.95;

const SETTINGS: SimulationSettings = {
  falseAlarm: FALSE_ALARM,
  blockS: 2,
  maxSeconds: 600,
  ignoresGood: false,
};

const BAD_REPLICAS: readonly (readonly [title: string, scenario: Scenario])[] = [
  ...EQUAL_REPLICAS.map(
    ([title, scenario]) => [`20 % slower: ${title}`, { ...scenario, slowness: 1.2 }] as const,
  ),
  ['20 % slower to the first token', { ...PLAIN, slowness: 1.2, isSlowToStart: true }],
  ['20 % slower, 20 requests/s', { ...PLAIN, slowness: 1.2, requestsPerSecond: 20 }],
  ['5 % of requests fail', { ...PLAIN, errorShare: 0.05 }],
];

const { rollouts, slow, watched } = startProgram(USAGE, {
  rollouts: { type: 'string', default: '21000' },
  slow: { type: 'string', default: '500' },
  watched: { type: 'string', default: '300' },
});
const isWithinBounds = measure(toCount(rollouts), toCount(slow), toCount(watched));
process.exitCode = isWithinBounds ? 0 : 1;

/** Prints the three tables. Returns whether the rates are as they are promised. */
function measure(rolloutCount: number, slowCount: number, watchedCount: number): boolean {
  console.log(`${'Equal replicas'.padEnd(48)}  rollouts  bad  good   open   seconds   requests`);
  const perKind = Math.ceil(rolloutCount / EQUAL_REPLICAS.length);
  const equal = EQUAL_REPLICAS.flatMap(([title, scenario]) => simulate(title, scenario, perKind, SETTINGS));
  console.log(
    `${'\nThe same, watched for three minutes'.padEnd(48)}   rollouts  bad  good   open   seconds   requests`,
  );
  const long = EQUAL_REPLICAS.flatMap(([title, scenario]) =>
    simulate(title, scenario, watchedCount, { ...SETTINGS, ignoresGood: true, maxSeconds: 180 }),
  );
  console.log(`${'\nBad replicas'.padEnd(48)}   rollouts  bad  good   open   seconds   requests`);
  const bad = BAD_REPLICAS.map(([title, scenario]) => simulate(title, scenario, slowCount, SETTINGS));
  const falseAlarms = rateOfBad(equal);
  const power = Math.min(...bad.map(rateOfBad));
  console.log(
    `\nFalse alarms: ${countBad(equal)} in ${equal.length} rollouts, ${countBad(long)} in ${long.length} watched ones.`,
  );
  console.log(
    `Found: ${(100 * power).toFixed(1)} % of the bad replicas of the kind that is the hardest to find.`,
  );
  return falseAlarms <= FALSE_ALARM && rateOfBad(long) <= FALSE_ALARM && power >= POWER;
}

function countBad(ends: readonly SimulatedEnd[]): number {
  return ends.filter(({ kind }) => kind === 'bad').length;
}

function rateOfBad(ends: readonly SimulatedEnd[]): number {
  return countBad(ends) / ends.length;
}

/** Simulates so many rollouts with the seeds 1, 2, …, and prints how they ended. Times: the median and 95 %. */
function simulate(
  title: string,
  scenario: Scenario,
  count: number,
  settings: SimulationSettings,
): readonly SimulatedEnd[] {
  const ends = Array.from({ length: count }, (_, index) =>
    runVerdict(scenario, toRandom(index + 1), settings),
  );
  const of = (kind: SimulatedEnd['kind']) => ends.filter((end) => end.kind === kind).length;
  const spread = (values: readonly number[]) =>
    `${Math.round(percentile(values, 0.5))}, ${Math.round(percentile(values, 0.95))}`;
  const cells = [
    String(count).padStart(8),
    String(of('bad')).padStart(4),
    String(of('good')).padStart(5),
    String(of('open')).padStart(6),
    spread(ends.map(({ seconds }) => seconds)).padStart(9),
    spread(ends.map(({ requests }) => requests)).padStart(10),
  ];
  console.log(`  ${title.padEnd(46)}${cells.join(' ')}`);
  return ends;
}

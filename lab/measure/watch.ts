import { startProgram, toCount } from '#testkit/programs/program.ts';
import { replaceBetween } from '#testkit/programs/results.ts';
import { percentile } from '#testkit/programs/statistics.ts';
import { toLongRandom, toRandom } from '#testkit/random.ts';
import { runWatch, UNTIL_FOUND } from '#testkit/verdict/run-watch.ts';
import { EQUAL_REPLICAS, PLAIN, type Scenario } from '#testkit/verdict/workload.ts';
import { FALSE_ALARMS_PER_DAY } from '#verdict';

const USAGE = `npm run lab -- measure/watch [--days N] [--minutes N] [--bad N] [--write]
  Simulates replicas that health.peers watches, four beside each other, with the code of the gateway.
  --days     days of equal replicas, over all four and all kinds of load together (default 28); more are rounded up
             to a multiple of 28, a day of each of the four under each kind
  --minutes  begins no further 28 days when the program has run for so long; the days that were simulated are stated
  --bad      bad replicas of each kind (default 200)
  --write    writes the figures into docs/evidence/health.md
  Exits with 1 if equal replicas are found bad more often than promised, or a bad one is not found within an hour.`;

const ALL = ['r0', 'r1', 'r2', 'r3'];
const DAY_S = 86_400;

/** Requests per second of all replicas together, for the days of equal ones. */
const EQUAL_RATE = 40;

/** A day of each replica under each kind of load. Longer watches are several of these, each with seeds of its own. */
const DAYS_OF_A_PORTION = ALL.length * EQUAL_REPLICAS.length;

const BAD_REPLICAS: readonly (readonly [title: string, scenario: Partial<Scenario>])[] = [
  ['20 % slower', { slowness: 1.2 }],
  ['20 % slower to the first token only', { slowness: 1.2, isSlowToStart: true }],
  ['twice as slow', { slowness: 2 }],
  ['fails 5 % of its requests', { errorShare: 0.05 }],
  ['fails 20 % of its requests', { errorShare: 0.2 }],
];

const RATES = [200, 40, 8] as const;

const options = startProgram(USAGE, {
  days: { type: 'string', default: '28' },
  minutes: { type: 'string' },
  bad: { type: 'string', default: '200' },
  write: { type: 'boolean', default: false },
});
const limitMs = options.minutes === undefined ? Number.POSITIVE_INFINITY : 60_000 * toCount(options.minutes);
const bad = measureBad(toCount(options.bad));
const equal = measureEqual(toCount(options.days), limitMs);
const report = [...equal.lines, '', ...bad.lines].join('\n');
console.log(report);
if (options.write)
  replaceBetween('docs/evidence/health.md', '<!-- measured: measure/watch -->', '<!-- end -->', report);
process.exitCode = equal.isRight && bad.isRight ? 0 : 1;

/** A table, and whether its figures are as promised. */
interface Table {
  readonly lines: readonly string[];
  readonly isRight: boolean;
}

/**
 * Watches equal replicas for so many days, or for as many as fit; and 28 days by a bound that they may reach in
 * reasonable time.
 */
function measureEqual(days: number, limitMs: number): Table {
  const lines = [
    '| Equal replicas, 10 requests/s each | Days | Found failing | Promised at most |',
    '|---|---:|---:|---:|',
  ];
  const lower = watchEqual(Math.min(days, DAYS_OF_A_PORTION), 24, Number.POSITIVE_INFINITY);
  const promised = watchEqual(days, FALSE_ALARMS_PER_DAY, limitMs);
  const isWithin = (title: string, of: EqualDays, perDay: number) => {
    const most = of.days * perDay;
    lines.push(`| ${title} | ${of.days} | ${of.alarms} | ${most.toFixed(1)} |`);
    return of.alarms <= Math.max(1, most);
  };
  const areWithin = [
    isWithin('the bound of the gateway: once in 1,000 days', promised, FALSE_ALARMS_PER_DAY),
    isWithin('a lower bound: once in an hour', lower, 24),
  ];
  return { lines, isRight: areWithin.every(Boolean) };
}

interface EqualDays {
  /** Of replicas: four are watched at a time. */
  readonly days: number;
  readonly alarms: number;
}

/** Watches equal replicas of each kind, one portion after the other. */
function watchEqual(days: number, falseAlarmsPerDay: number, limitMs: number): EqualDays {
  const seconds = Math.ceil((DAY_S * Math.min(days, DAYS_OF_A_PORTION)) / DAYS_OF_A_PORTION);
  const portions = Math.ceil(days / DAYS_OF_A_PORTION);
  const settings = { replicas: ALL, seconds, endsWithAlarm: false, isProbation: false, falseAlarmsPerDay };
  let watched: EqualDays = { days: 0, alarms: 0 };
  for (let portion = 0; portion < portions; portion++) {
    if (performance.now() >= limitMs) break;
    const found = EQUAL_REPLICAS.flatMap(([, scenario], kind) => {
      const random = toLongRandom(portion * EQUAL_REPLICAS.length + kind + 1);
      return runWatch({ ...scenario, requestsPerSecond: EQUAL_RATE }, random, settings);
    });
    watched = {
      days: watched.days + Math.min(days, DAYS_OF_A_PORTION),
      alarms: watched.alarms + found.length,
    };
    console.error(`${watched.days} days by a bound of ${falseAlarmsPerDay} per day: ${watched.alarms} found`);
  }
  return watched;
}

/** Watches bad replicas until they are found. */
function measureBad(count: number): Table {
  const lines = [
    `| A replica that (${count} of each) | 50 requests/s | 10 requests/s | 2 requests/s | again, on probation at 50 requests/s |`,
    '|---|---:|---:|---:|---:|',
  ];
  let areAllFound = true;
  const toCell = (scenario: Scenario, isProbation: boolean) => {
    const found = Array.from({ length: count }, (_, seed) => {
      const [alarm] = runWatch(scenario, toRandom(seed + 1), { ...UNTIL_FOUND, isProbation });
      return alarm?.seconds ?? Number.POSITIVE_INFINITY;
    });
    if (found.some((seconds) => !Number.isFinite(seconds))) areAllFound = false;
    return `${Math.round(percentile(found, 0.5))}, ${Math.round(percentile(found, 0.95))}`;
  };
  for (const [title, changes] of BAD_REPLICAS) {
    const scenario = { ...PLAIN, ...changes };
    console.error(`replicas that are bad: ${title}`);
    const cells = RATES.map((requestsPerSecond) => toCell({ ...scenario, requestsPerSecond }, false));
    lines.push(`| ${[title, ...cells, toCell({ ...scenario, requestsPerSecond: 200 }, true)].join(' | ')} |`);
  }
  return { lines, isRight: areAllFound };
}

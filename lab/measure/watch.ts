import { FALSE_ALARMS_PER_DAY } from '../../src/verdict/watch.ts';
import { toRandom } from '../../test/support/random.ts';
import { startProgram, toCount } from '../support/program.ts';
import { replaceBetween } from '../support/results.ts';
import { percentile } from '../support/statistics.ts';
import { runWatch, UNTIL_FOUND, type WatchSettings } from '../verdict/run-watch.ts';
import { EQUAL_REPLICAS, PLAIN, type Scenario } from '../verdict/workload.ts';

const USAGE = `npm run lab -- measure/watch [--days N] [--bad N] [--write]
  Simulates replicas that health.peers watches, four beside each other, with the code of the gateway.
  --days     days of equal replicas, over all four and all kinds of load together (default 28)
  --bad      bad replicas of each kind (default 200)
  --write    writes the figures into docs/routing.md
  Exits with 1 if equal replicas are found bad more often than promised, or a bad one is not found within an hour.`;

const ALL = ['r0', 'r1', 'r2', 'r3'];
const DAY_S = 86_400;

/** Requests per second of all replicas together, for the days of equal ones. */
const EQUAL_RATE = 40;

/** The bounds that are tried: the promised one, and one that equal replicas may reach in reasonable time. */
const BOUNDS = [
  ['the bound of the gateway: once in 1,000 days', FALSE_ALARMS_PER_DAY],
  ['a lower bound: once in an hour', 24],
] as const;

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
  bad: { type: 'string', default: '200' },
  write: { type: 'boolean', default: false },
});
const lines: string[] = [];
const isWithinBounds = [measureEqual(toCount(options.days)), measureBad(toCount(options.bad))].every(Boolean);
console.log(lines.join('\n'));
if (options.write)
  replaceBetween('docs/routing.md', '<!-- measured: measure/watch -->', '<!-- end -->', lines.join('\n'));
process.exitCode = isWithinBounds ? 0 : 1;

/** Watches equal replicas of each kind for so many days. Returns whether there are as few alarms as promised. */
function measureEqual(days: number): boolean {
  const secondsPerKind = Math.ceil((days * DAY_S) / ALL.length / EQUAL_REPLICAS.length);
  lines.push(
    '| Equal replicas, 10 requests/s each | Days | Found failing | Promised at most |',
    '|---|---:|---:|---:|',
  );
  return BOUNDS.map(([title, falseAlarmsPerDay]) => {
    const alarms = EQUAL_REPLICAS.reduce((sum, [, scenario], kind) => {
      const seed = toRandom(kind + 1);
      const settings: WatchSettings = {
        ...{ replicas: ALL, seconds: secondsPerKind, endsWithAlarm: false, isProbation: false },
        falseAlarmsPerDay,
      };
      return sum + runWatch({ ...scenario, requestsPerSecond: EQUAL_RATE }, seed, settings).length;
    }, 0);
    const watchedDays = (secondsPerKind * ALL.length * EQUAL_REPLICAS.length) / DAY_S;
    const promised = watchedDays * falseAlarmsPerDay;
    lines.push(`| ${title} | ${watchedDays.toFixed(0)} | ${alarms} | ${promised.toFixed(1)} |`);
    return alarms <= Math.max(1, promised);
  }).every(Boolean);
}

/** Watches bad replicas until they are found. Returns whether all are. */
function measureBad(count: number): boolean {
  lines.push(
    '',
    `| A replica that (${count} of each) | 50 requests/s | 10 requests/s | 2 requests/s | again, on probation at 50 requests/s |`,
    '|---|---:|---:|---:|---:|',
  );
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
    const cells = RATES.map((requestsPerSecond) => toCell({ ...scenario, requestsPerSecond }, false));
    lines.push(`| ${[title, ...cells, toCell({ ...scenario, requestsPerSecond: 200 }, true)].join(' | ')} |`);
  }
  return areAllFound;
}

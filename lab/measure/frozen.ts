import { AUTO_BOUND, type SilenceBound } from '#replicas/health';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { percentile } from '#testkit/programs/statistics.ts';
import { toLongRandom } from '#testkit/random.ts';
import { CHANGING_LOADS, type NamedLoad, SILENCE_LOADS } from '#testkit/silence/loads.ts';
import { runSilences, SIMULATED_REPLICAS, type SilenceFindings } from '#testkit/silence/run-silences.ts';

const USAGE = `npm run lab -- measure/frozen [--days N] [--starts N] [--freezes N] [--nights N] [--write]
  Simulates replicas that health.frozen_after watches, four beside each other, with the code of the gateway.
  --days     days of healthy replicas, over all four and all seven kinds of load together (default 112); they are
             rounded up to a multiple of 28
  --starts   how often a gateway starts, and is watched for an hour, for each kind (default 100)
  --freezes  how often a replica freezes after four hours, for each kind (default 20)
  --nights   how many weeks of three days have nights with another load (default 3)
  --write    writes the figures into docs/evidence/frozen.md
  Exits with 1 if the default finds a healthy replica frozen in the days or after a start, or does not find a frozen
  one under steady chats within 30 s.`;

const HOUR_S = 3_600;
const DAY_S = 86_400;
const WEEK_DAYS = 3;

/** The candidates: each time as it is, and sparing what is usual. */
const TIMES_S = [5, 10, 15, 30] as const;
const BOUNDS: readonly SilenceBound[] = [false, true].flatMap((sparesUsual) =>
  TIMES_S.map((seconds) => ({ frozenAfterMs: 1_000 * seconds, sparesUsual })),
);
const DEFAULT = BOUNDS.findIndex(
  ({ frozenAfterMs, sparesUsual }) =>
    frozenAfterMs === AUTO_BOUND.frozenAfterMs && sparesUsual === AUTO_BOUND.sparesUsual,
);

const { days, starts, freezes, nights, write } = startProgram(USAGE, {
  days: { type: 'string', default: '112' },
  starts: { type: 'string', default: '100' },
  freezes: { type: 'string', default: '20' },
  nights: { type: 'string', default: '3' },
  write: { type: 'boolean', default: false },
});
process.exitCode = measure() ? 0 : 1;

/** Prints the tables, which it may write. Returns whether the default is right. */
function measure(): boolean {
  const daysOfEach = Math.ceil(toCount(days) / (SIMULATED_REPLICAS.length * SILENCE_LOADS.length));
  const long = countAlarms(SILENCE_LOADS, 1, daysOfEach * DAY_S);
  const begun = countAlarms(SILENCE_LOADS, toCount(starts), HOUR_S);
  const changing = countAlarms(CHANGING_LOADS, toCount(nights), WEEK_DAYS * DAY_S);
  const found = findFrozen(toCount(freezes));
  const { date, commit, machine } = readCircumstances();
  const report = [
    `${date}, commit ${commit}, Node ${process.version}, ${machine}.`,
    ...toTable(
      `Replicas found frozen in ${daysOfEach * SIMULATED_REPLICAS.length} replica-days of each kind`,
      long,
    ),
    ...toTable(`In the first hour after each of ${starts} starts of a gateway`, begun),
    ...toTable(
      `In ${nights} times ${WEEK_DAYS} days whose nights have another load than all before`,
      changing,
    ),
    ...toTable(
      `Seconds until a frozen replica is found, of ${freezes}: the median, and 95 % of them`,
      found.map(({ title, seconds }) => ({
        title,
        cells: seconds.map((each) => `${toSeconds(each, 0.5)}, ${toSeconds(each, 0.95)}`),
      })),
    ),
  ].join('\n');
  console.log(report);
  if (write) replaceBetween('docs/evidence/frozen.md', '<!-- measured -->', '<!-- end -->', report);
  const isFound = (found[0]?.seconds[DEFAULT] ?? []).every((seconds) => seconds <= 30);
  return isFound && [...long, ...begun].every(({ cells }) => cells[DEFAULT] === 0);
}

interface Row {
  readonly title: string;
  /** One for each of BOUNDS. */
  readonly cells: readonly (number | string)[];
}

/** Watches healthy replicas under each load so often, for so long. */
function countAlarms(loads: readonly NamedLoad[], times: number, seconds: number): readonly Row[] {
  return loads.map(([title, load], kind) => {
    console.error(`${title}: ${times} times ${seconds / HOUR_S} h`);
    const runs = Array.from({ length: times }, (_, index) =>
      runSilences({ load, random: toLongRandom(1_000 * kind + index + 1), seconds, bounds: BOUNDS }),
    );
    return { title, cells: sumUp(runs) };
  });
}

function sumUp(runs: readonly (readonly SilenceFindings[])[]): readonly number[] {
  return BOUNDS.map((_, bound) => runs.reduce((sum, run) => sum + (run[bound]?.falseAlarms ?? 0), 0));
}

/** Freezes a replica under each load so often. Infinite seconds: it was not found within an hour. */
function findFrozen(
  times: number,
): readonly { readonly title: string; readonly seconds: readonly (readonly number[])[] }[] {
  return SILENCE_LOADS.map(([title, load], kind) => {
    console.error(`${title}: ${times} replicas freeze`);
    const runs = Array.from({ length: times }, (_, index) =>
      runSilences({
        load,
        random: toLongRandom(100_000 + 1_000 * kind + index),
        bounds: BOUNDS,
        seconds: 5 * HOUR_S,
        freezesAtS: 4 * HOUR_S + 7 * index,
      }),
    );
    const seconds = BOUNDS.map((_, bound) =>
      runs.map((run) => run[bound]?.foundAfterS ?? Number.POSITIVE_INFINITY),
    );
    return { title, seconds };
  });
}

function toSeconds(seconds: readonly number[], share: number): string {
  const sorted = seconds.toSorted((a, b) => a - b);
  const isFound = Number.isFinite(sorted[Math.ceil(share * (sorted.length - 1))]);
  return isFound ? String(Math.round(percentile(sorted, share))) : '–';
}

function toTable(caption: string, rows: readonly Row[]): readonly string[] {
  const heads = BOUNDS.map(
    ({ frozenAfterMs, sparesUsual }) => `${frozenAfterMs / 1_000} s${sparesUsual ? ', usual spared' : ''}`,
  );
  return [
    '',
    `| ${[caption, ...heads].join(' | ')} |`,
    `|---|${'---:|'.repeat(heads.length)}`,
    ...rows.map(({ title, cells }) => `| ${[title, ...cells].join(' | ')} |`),
  ];
}

import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toSpanJson } from '#otel/otlp';
import { SpanValues } from '#records/files';
import { askAdmin, type GatewayProcess, startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { printFailures, readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { toRandom } from '#testkit/random.ts';
import { toClockEnvironment } from './day/clock-preload.ts';
import { type Money, playDay } from './day/play-day.ts';
import { BURST, DAY_MS, planRuns, SETTINGS, START_MS } from './day/script.ts';
import { planTraffic } from './day/traffic.ts';
import { type AskedUsage, compareUsage, GROUPINGS, type UsageAnswer } from './day/usage-answer.ts';
import { toLedgerFacts } from './ledger-facts.ts';

const values = startProgram(
  `npm run lab -- history/day [options]
  Plays a day of mixed traffic, as fast as it can and by a clock of its own, into a history whose process is killed again and
  again, whose disk is full now and then, and whose clock is set back and forth. Then asks a gateway for the usage by hour and
  of the day by every name, in the evening and a week later, and compares each figure with the requests. Exits with 1 if one
  differs, a record is missing that no gap names, or if what requests cost and what is idle is not hours by price, to 0.1 %.
  --requests N  per hour (default 2400)
  --kills N     per hour (default 1)
  --seed N      (default: another one each time)
  --write       writes the results into docs/evidence/history.md`,
  {
    requests: { type: 'string', default: '2400' },
    kills: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    write: { type: 'boolean', default: false },
  },
);

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const END_MS = START_MS + DAY_MS;
/** The minutes of all but the last hours are removed by then. */
const LATER_MS = END_MS + 7 * 24 * HOUR_MS - 4 * HOUR_MS;
/** The most steps of an answer. */
const MAX_STEPS = 1_500;
const TOLERANCE = 0.001;

/** A span as it is asked for, and what it is: epoch milliseconds. */
interface AskedSpan {
  readonly since: string;
  readonly until: string;
  readonly time_zone: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

const toSpan = (fromMs: number, untilMs: number): AskedSpan => {
  const [since, until] = [fromMs, untilMs].map((ms) => new Date(ms).toISOString()) as [string, string];
  return { since, until, time_zone: 'UTC', fromMs, untilMs };
};
const WHOLE = toSpan(START_MS, END_MS);
/** A day of 25 hours, and one that begins at half past. */
const LOCAL_DAYS: readonly AskedSpan[] = [
  { ...toSpan(START_MS + HOUR_MS, END_MS - HOUR_MS), time_zone: 'Europe/Berlin' },
  { ...toSpan(START_MS - 2.5 * HOUR_MS, START_MS + 21.5 * HOUR_MS), time_zone: 'Asia/Kolkata' },
].map((span) => ({ ...span, since: '2026-10-25', until: '2026-10-26' }));

const seed = toCount(values.seed);
console.log(`seed ${seed}`);
const failures: string[] = [];
let figures = 0;

await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-day-'));
const stateDir = join(folder.path, 'state');
await mkdir(stateDir, { mode: 0o700 });
const requests = planTraffic(seed, { dayMs: DAY_MS, perHour: toCount(values.requests), burst: BURST });
const runs = planRuns(seed, toCount(values.kills), requests);
const day = await playDay(join(stateDir, 'history.db'), { requests, runs, random: toRandom(seed + 1) });
failures.push(...day.failures);

/** Starts a gateway with this history, whose clock shows `epochMs` now. */
async function startAt(epochMs: number): Promise<GatewayProcess> {
  const config = {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    state_dir: stateDir,
    history: { max_size: `${SETTINGS.maxSizeBytes / 1024 ** 2}MiB` },
    replicas: [{ name: 'r0', url: 'http://127.0.0.1:9', models: ['large'], engine: 'vllm' }],
    export: { to: 'file' },
    metrics: { otlp: false },
  };
  const gateway = await startGateway(folder.path, config, toClockEnvironment(epochMs - Date.now()));
  // It is noted, and what is too old goes.
  await askAdmin(gateway.adminUrl, 'POST', '/admin/reload');
  return gateway;
}

/** Asks for usage, and compares it with the requests of the span, which may be rounded where minutes are gone. */
async function check(
  gateway: GatewayProcess,
  { fromMs, untilMs, ...span }: AskedSpan,
  { by = [], stepMs = null, filters = {} }: Partial<AskedUsage> = {},
): Promise<UsageAnswer> {
  const step = stepMs === null ? {} : { step: `${stepMs / MINUTE_MS}m` };
  const params = new URLSearchParams({ ...span, ...step, ...filters, by: by.join(), limit: '99999' });
  const path = `/admin/usage?${params}`;
  const answer = (await askAdmin(gateway.adminUrl, 'GET', path)) as UsageAnswer;
  const lastHourMs = Math.floor(untilMs / HOUR_MS) * HOUR_MS;
  const hasMinutes = lastHourMs === untilMs || Date.parse(answer.kept.minutes_since) <= lastHourMs;
  const expected = [Math.max(fromMs, START_MS), hasMinutes ? untilMs : lastHourMs + HOUR_MS];
  const told = [answer.since, answer.until].map((time) => Date.parse(time));
  if (told.join() !== expected.join())
    failures.push(`${path}: it is from ${answer.since} to ${answer.until}`);
  const compared = compareUsage(answer, day.counted, { by, stepMs, filters });
  figures += compared.figures;
  failures.push(...compared.differences.map((difference) => `${path}: ${difference}`));
  return answer;
}

/** Asks everything, at this time. Returns the answer for all of the day. */
async function checkAll(epochMs: number): Promise<UsageAnswer> {
  const gateway = await startAt(epochMs);
  for (const by of GROUPINGS) {
    await check(gateway, WHOLE, { by, stepMs: HOUR_MS });
    await check(gateway, WHOLE, { by });
  }
  for (const local of LOCAL_DAYS) {
    await check(gateway, local, { by: ['tenant', 'model'] });
    await check(gateway, local, { by: ['replica'], filters: { tenant: '__proto__' } });
  }
  const answer = await check(gateway, WHOLE);
  const keptMs = Math.max(Date.parse(answer.kept.minutes_since), END_MS - MAX_STEPS * MINUTE_MS);
  await check(gateway, toSpan(keptMs, END_MS), { by: ['endpoint'], stepMs: MINUTE_MS });
  await gateway.end('SIGTERM');
  return answer;
}

/** Compares the ledger spans, of whose records none is missing, with the history. */
function compareLedger(): { readonly spans: number; readonly tokens: number } {
  const known = new Map(day.counted.map((each) => [`${each.instance} ${each.seq}`, each.request.fields]));
  let [spans, tokens] = [0, 0];
  for (const encodedSpan of day.ledgers) {
    const json: unknown = JSON.parse(toSpanJson(encodedSpan) ?? '{}');
    const ledger = toLedgerFacts(new SpanValues(json));
    const own = ledger.committed.map((seq) => known.get(`${ledger.instance} ${seq}`));
    if (own.includes(undefined)) continue;
    const sum = own.reduce(
      (all, fields) => all + (fields?.prompt_tokens ?? 0) + (fields?.completion_tokens ?? 0),
      0,
    );
    if (sum !== ledger.tokens)
      failures.push(`a ledger span of ${ledger.instance} has ${ledger.tokens} tokens, the history ${sum}`);
    spans += 1;
    tokens += sum;
  }
  return { spans, tokens };
}

/** How far what requests cost and what is idle are from hours by price. */
function toBalance(
  currency: string,
  { hoursByPrice, busy, idle, cut, missing }: Money,
  costs: number,
): string {
  const ofRequests = costs + missing + cut;
  const [ofBusy, ofAll] = [ofRequests / busy - 1, (ofRequests + idle) / hoursByPrice - 1];
  if (Math.abs(ofBusy) > TOLERANCE || Math.abs(ofAll) > TOLERANCE)
    failures.push(
      `${ofRequests} ${currency} of requests and ${idle} idle are not ${hoursByPrice}, ${busy} of it busy`,
    );
  const show = (amount: number) => amount.toFixed(2);
  return `${show(costs)} ${currency} in the history, ${show(missing + cut)} missing or cut, ${show(idle)} idle; hours by price ${show(hoursByPrice)} (${(100 * Math.abs(ofAll)).toFixed(3)} % off)`;
}

const evening = await checkAll(END_MS + MINUTE_MS);
const later = await checkAll(LATER_MS);
const { missing } = day;
for (const reason of ['behind', 'off', 'unencodable'] as const) {
  const gaps = evening.gaps.filter((gap) => gap.reason === reason);
  const told = gaps.reduce((sum, { records }) => sum + (records ?? 0), 0);
  if (told !== missing[reason])
    failures.push(`${told} records are said to be missing (${reason}), ${missing[reason]} are`);
}
const ledger = compareLedger();
const balances = [...day.money].map(([currency, money]) => [
  `Costs and idle time in ${currency}`,
  toBalance(currency, money, evening.total.costs[currency] ?? 0),
]);

const count = (number: number) => number.toLocaleString('en');
const { date, commit, machine } = readCircumstances();
const rows = [
  ['Seed', String(seed)],
  [
    'Ends of the process',
    `${day.runs.killed} kills in the middle of a write, or soon after; ${day.runs.killedStarts} while it opened the history; ${day.runs.closed} in order`,
  ],
  ['Records in the history', count(day.counted.length)],
  [
    'Records that are missing, each named by a gap',
    `${count(missing.killed)} by kills, each of the last second but where the disk was full; ${count(missing.behind)} because the disk was full for long; ${count(missing.off)} while it was off; ${count(missing.unencodable)} without a span`,
  ],
  [
    'Figures compared: by each name and all of them, by hour, of the day, of the day in Berlin and in Kolkata',
    `${count(figures)}, in the evening and when minutes before ${later.kept.minutes_since} were gone`,
  ],
  ['Figures that differ', failures.length === 0 ? 'none' : 'some'],
  [
    'Ledger spans whose records are all there',
    `${count(ledger.spans)} of ${count(day.ledgers.length)}, with the same ${count(ledger.tokens)} tokens`,
  ],
  ...balances,
];
const table = rows.map(([what, result]) => `| ${what} | ${result} |`).join('\n');
const text = `${date}, commit ${commit}; ${machine}.\n\n| What | Result |\n|---|---|\n${table}`;
console.log(text);
printFailures(failures);
if (values.write) replaceBetween('docs/evidence/history.md', '<!-- begin: day -->', '<!-- end -->', text);
process.exitCode = failures.length === 0 ? 0 : 1;

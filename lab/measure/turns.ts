import { readFileSync } from 'node:fs';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { percentile } from '#testkit/programs/statistics.ts';
import { type CallFrame, type CpuProfile, readSamples } from './profiles/cpu-profile.ts';

const values = startProgram(
  `npm run lab -- measure/turns --profile FILE [options]
  What the turns of the event loop of a gateway consist of, the longest 1 % beside all of them. A turn is what lies between two
  moments in which the process waits, so the load must leave it time to wait. FILE is a profile by V8:
    npm run bench -- --only gateway --cases paced-1000 --rounds 1 --run-ms 30000 \\
      --node-flags='--cpu-prof --cpu-prof-interval=500 --cpu-prof-dir=/tmp/profile'
  --from S    leaves out so many seconds: the start (default 14)
  --until S   leaves out what comes later: the end (default 34)
  --write     writes the table into docs/evidence/benchmarks.md`,
  {
    profile: { type: 'string' },
    from: { type: 'string', default: '14' },
    until: { type: 'string', default: '34' },
    write: { type: 'boolean', default: false },
  },
);

/** By which functions a sample is known; the first that is on the stack counts. Those in brackets are V8's. */
const CAUSES: readonly (readonly [cause: string, functions: readonly string[]])[] = [
  ['collecting garbage', ['(garbage collector)']],
  ['compiling, and other work of V8', ['(program)']],
  ['export to the collector', ['exportBatch']],
  ['pushing metrics', ['collect', 'serializeMetricsExportRequest']],
  ['those who hear of records: metrics, history, page', ['onRecord']],
  ['making records', ['endSpans', 'describeText']],
  ['requests that begin', ['beginRecorded']],
  ['writing events to sockets: the system call', ['writeBuffer']],
  ['reading events from sockets, and relaying them', ['onStreamRead']],
];
const OTHER = 'anything else';

/** How long a turn took, in all and by cause. Microseconds. */
interface Turn {
  readonly us: number;
  readonly causes: ReadonlyMap<string, number>;
}

/** Reads the turns between two moments of a profile, in seconds since its start. */
function readTurns(profile: CpuProfile, fromS: number, untilS: number): readonly Turn[] {
  const turns: Turn[] = [];
  let turn = new Map<string, number>();
  const toCause = (stack: readonly CallFrame[]) =>
    CAUSES.find(([, functions]) => stack.some(({ functionName }) => functions.includes(functionName)))?.[0] ??
    OTHER;
  for (const { label: cause, us, untilUs } of readSamples(profile, toCause)) {
    if (untilUs < fromS * 1e6 || untilUs > untilS * 1e6) continue;
    if (cause !== null) turn.set(cause, (turn.get(cause) ?? 0) + us);
    else if (turn.size > 0) {
      turns.push({ us: turn.values().reduce((sum, each) => sum + each, 0), causes: turn });
      turn = new Map();
    }
  }
  return turns;
}

function toShares(turns: readonly Turn[]): ReadonlyMap<string, number> {
  const all = turns.reduce((sum, { us }) => sum + us, 0);
  const shareOf = (cause: string) =>
    turns.reduce((sum, { causes }) => sum + (causes.get(cause) ?? 0), 0) / all;
  return new Map([...CAUSES.map(([cause]) => cause), OTHER].map((cause) => [cause, shareOf(cause)]));
}

if (values.profile === undefined) throw new Error('--profile FILE is missing');
const profile = JSON.parse(readFileSync(values.profile, 'utf8')) as CpuProfile;
const [fromS, untilS] = [toCount(values.from), toCount(values.until)];
const turns = readTurns(profile, fromS, untilS);
const lengths = turns.map(({ us }) => us);
const longUs = percentile(lengths, 0.99);
const long = turns.filter(({ us }) => us >= longUs);
const [ofAll, ofLong] = [toShares(turns), toShares(long)];
const toMs = (us: number) => (us / 1_000).toFixed(1);
const toPercent = (share = 0) => `${(100 * share).toFixed(1)} %`;
const rows = [...ofLong]
  .toSorted(([, a], [, b]) => b - a)
  .map(([cause, share]) => `| ${cause} | ${toPercent(ofAll.get(cause))} | ${toPercent(share)} |`);
const { date, commit, machine } = readCircumstances();
const busy = lengths.reduce((sum, us) => sum + us, 0) / (untilS - fromS) / 1e6;
const table = `${date}, commit ${commit}, ${machine}; ${turns.length.toLocaleString('en')} turns in ${untilS - fromS} seconds, ${toPercent(busy)} of the time; median ${toMs(percentile(lengths, 0.5))} ms, 99th percentile ${toMs(longUs)} ms, longest ${toMs(Math.max(...lengths))} ms.

| | all turns | the longest 1 % |
|---|---:|---:|
${rows.join('\n')}`;
console.log(table);
if (values.write)
  replaceBetween('docs/evidence/benchmarks.md', '<!-- measured: measure/turns -->', '<!-- end -->', table);

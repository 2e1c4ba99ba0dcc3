import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { type AdminWaitsResult, sendAdminWaits } from './admin-waits.ts';
import { type LargeBodiesCase, type LargeBodiesResult, sendLargeBodies } from './large-bodies.ts';

const USAGE = `npm run lab -- overload [options]
  Sends more at once than a gateway takes: bodies of 32 MiB, and calls that wait for a drain. Prints what came of them
  and the memory of the gateway. Exits with 1 if a request failed otherwise than the documents say, or a small one failed
  meanwhile. Linux only. Takes minutes.
  --count N  how many bodies (500)
  --waits N  how many calls (3000)
  --write    writes the tables of docs/evidence/reliability.md`;

const values = startProgram(USAGE, {
  count: { type: 'string', default: '500' },
  waits: { type: 'string', default: '3000' },
  write: { type: 'boolean' },
});
const MIB = 1024 * 1024;
const count = toCount(values.count);
const CASES: readonly LargeBodiesCase[] = [
  { name: 'replicas that read at once', pauseMs: 0 },
  { name: 'replicas that read nothing for 3 s', pauseMs: 3_000 },
  {
    name: 'replicas that read at once, with `MALLOC_MMAP_THRESHOLD_=65536`',
    pauseMs: 0,
    env: { MALLOC_MMAP_THRESHOLD_: '65536' },
  },
].map((each) => ({ ...each, count, bodyBytes: 32 * MIB, recoveryMs: 20_000 }));

await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-overload-'));
const rows: string[] = [];
for (const [index, each] of CASES.entries()) {
  const result = await sendLargeBodies(each, join(folder.path, `bodies-${index}`));
  rows.push(toRow(each, result));
  console.log(rows.at(-1));
  complain(problemsOf(each, result));
}
const waits = await sendAdminWaits(toCount(values.waits), join(folder.path, 'waits'));
console.log(toWaitsLine(waits));
complain([
  ...waits.failures,
  ...(waits.others.answered < waits.others.all ? ['a call of somebody else was not answered'] : []),
  ...(waits.failedChats > 0 ? [`${waits.failedChats} chats failed`] : []),
]);
if (values.write && process.exitCode === undefined) {
  const { date, commit, machine } = readCircumstances();
  const text = [
    `Measured on ${date} at commit ${commit}, with Node ${process.version} on ${machine}, shared with much other work: the`,
    'times are those of the machine.',
    '',
    `| ${count} bodies of 32 MiB at once, twice, to | served | 503 \`overloaded\` | failed | seconds each | small requests meanwhile | memory before | peak | after | peak of the second time |`,
    '|---|---|---|---|---|---|---|---|---|---|',
    ...rows,
    '',
    toWaitsLine(waits),
  ].join('\n');
  replaceBetween('docs/evidence/reliability.md', '<!-- overload -->', '<!-- end of overload -->', text);
}

function complain(problems: readonly string[]): void {
  for (const problem of problems.slice(0, 10)) console.error(`  NOT AS EXPECTED: ${problem}`);
  if (problems.length > 0) process.exitCode = 1;
}

function problemsOf({ count: sent }: LargeBodiesCase, result: LargeBodiesResult): readonly string[] {
  const { served, refused, failures, meanwhile, afterwards } = result;
  return [
    ...failures,
    ...(served + refused === 2 * sent
      ? []
      : [`${2 * sent - served - refused} requests without the expected answer`]),
    ...(meanwhile.every((outcome) => outcome === '200') ? [] : ['a small request failed meanwhile']),
    ...(afterwards === '200' ? [] : [`a large request afterwards: ${afterwards}`]),
  ];
}

function toRow({ name }: LargeBodiesCase, result: LargeBodiesResult): string {
  const { served, refused, failures, seconds, meanwhile, memory } = result;
  const small = `${meanwhile.filter((outcome) => outcome === '200').length} of ${meanwhile.length} served`;
  const bytes = [memory.before, memory.peak, memory.after, memory.secondPeak].map(toMib);
  return `| ${[name, served, refused, failures.length, seconds.toFixed(0), small, ...bytes].join(' | ')} |`;
}

function toWaitsLine(result: AdminWaitsResult): string {
  const { calls, waited, refused, turnedAway, others, failedChats, memory } = result;
  return (
    `${calls} calls of \`drain?wait=1h\` at once, each on a connection of its own: ${waited} waited and were answered with ` +
    `\`safe_to_stop: true\`, ${refused} got 503 \`too_many_waits\`, ${turnedAway} connections were closed; ` +
    `${others.answered} of ${others.all} calls of others were answered meanwhile (after ${others.repeats} repeats), and ${50 - failedChats} of 50 chats; ` +
    `memory ${toMib(memory.before)} before, ${toMib(memory.peak)} at its peak.`
  );
}

function toMib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`;
}

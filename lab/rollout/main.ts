import { spawnSync } from 'node:child_process';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { startProgress, type Tell } from '#testkit/programs/progress.ts';
import { printFailures } from '#testkit/programs/results.ts';
import { judgeSeeds, SEEDED_KINDS } from './judge-seeds.ts';
import { findBroken, type PlainReport, type Results, toTables, writeTables } from './result-tables.ts';
import {
  type CaseReport,
  OUTAGE_MS,
  rollDuringAdminOutages,
  rollLastReplica,
  rollService,
} from './roll-in-hard-cases.ts';
import { rollReplicas } from './roll-replicas.ts';
import { rollWithVerdict, VERDICT_CASES } from './roll-with-verdict.ts';
import { updateGateways } from './update-gateways.ts';

const USAGE = `npm run rollout -- [options]
  Rolls simulated replicas under 200 requests/s, with a verdict and without; judges seeded workloads with the code of the
  verdict; updates two gateways behind HAProxy, if it is installed. Prints tables of verdicts, times to them and lost
  requests. Exits with 1 if a request failed that no bad engine failed, a drained replica got a request, a record is
  missing, or a verdict is wrong. Takes about ten minutes; case (g) needs redis-server.
  --seeds      workloads of each kind (default 200)
  --verdicts   without the rollouts that have no verdict
  --write      also writes the tables into docs/evidence/verdict.md`;

const {
  seeds,
  verdicts: hasVerdictsOnly = false,
  write: isWritten = false,
} = startProgram(USAGE, {
  seeds: { type: 'string', default: '200' },
  verdicts: { type: 'boolean' },
  write: { type: 'boolean' },
});

/** Rollouts and updates without a verdict. Null: the machine lacks what they need. */
const PLAIN_CASES: readonly ((tell: Tell) => Promise<PlainReport | null>)[] = [
  async (tell) => {
    const { exitCode, missing, ...report } = await rollReplicas(2, { tell });
    return toPlain('four replicas, two workers', report, {
      isRight: exitCode === 0 && missing === 0,
      missing,
    });
  },
  async (tell) => {
    const report = await rollService({ tell });
    const isRight = report.exitCode === 0 && report.restarted.length === 3;
    return toPlain('three replicas behind an SRV name that they leave while they restart', report, {
      isRight,
    });
  },
  async (tell) => {
    const report = await rollDuringAdminOutages({ tell });
    const isRight = report.exitCode === 0 && report.restarted.length === 4;
    return toPlain(`four replicas, no admin API for ${OUTAGE_MS} ms at each undrain`, report, { isRight });
  },
  async () => {
    const report = await rollLastReplica();
    const isRight = report.exitCode !== 0 && report.restarted.length === 0;
    return toPlain('the last replica that works: refused', report, { isRight });
  },
  async () => {
    const path = `${process.env.PATH}:/usr/sbin`;
    if (spawnSync('haproxy', ['-v'], { env: { PATH: path } }).status !== 0) return null;
    const { exitCodes, requests, failures, missing } = await updateGateways();
    printFailures(failures);
    return {
      title: 'two gateways behind HAProxy, replaced one after the other',
      requests,
      misled: null,
      failed: failures.length,
      missingRecords: missing,
      isRight: exitCodes.every((exitCode) => exitCode === 0) && failures.length + missing === 0,
    };
  },
];

const results = await run(hasVerdictsOnly ? [] : PLAIN_CASES, toCount(seeds));
console.log(`\n${toTables(results)}\n`);
if (isWritten) writeTables(results);
const broken = findBroken(results);
for (const title of broken) console.error(`NOT AS PROMISED: ${title}`);
console.log(broken.length === 0 ? 'All as promised.' : `${broken.length} not as promised.`);
process.exitCode = broken.length === 0 ? 0 : 1;

async function run(plainCases: typeof PLAIN_CASES, seedCount: number): Promise<Results> {
  const total = VERDICT_CASES.length + SEEDED_KINDS.length + plainCases.length;
  const progress = startProgress(total);
  const cases: Results['cases'][number][] = [];
  for (const each of VERDICT_CASES) {
    const report = await progress.during(each.title, (tell) => rollWithVerdict(each, tell));
    cases.push([each, report]);
    console.log(`${each.title}: ${report.sentence} (${report.exitCodes.join(', then ')})`);
  }
  const kinds = [];
  for (const kind of SEEDED_KINDS) {
    kinds.push(await progress.during(kind.title, (tell) => judgeSeeds(kind, seedCount, tell)));
  }
  const plain = [];
  for (const roll of plainCases) {
    const report = await progress.during('without a verdict', roll);
    if (report === null) console.log('two gateways behind HAProxy: left out, haproxy is not installed');
    else plain.push(report);
  }
  return { cases, kinds, plain };
}

function toPlain(
  title: string,
  {
    requests,
    failures,
    reachedWhileDrained,
    cut,
  }: Pick<CaseReport, 'requests' | 'failures' | 'reachedWhileDrained' | 'cut'>,
  { isRight, missing = null }: { readonly isRight: boolean; readonly missing?: number | null },
): PlainReport {
  printFailures(failures);
  const misled = reachedWhileDrained + cut;
  return {
    title,
    requests,
    failed: failures.length,
    misled,
    missingRecords: missing,
    isRight: isRight && failures.length + misled === 0,
  };
}

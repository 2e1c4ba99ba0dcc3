import { spawnSync } from 'node:child_process';
import { toRandom } from '../../test/support/random.ts';
import { startProgram } from '../support/program.ts';
import { printFailures, printFigures } from '../support/results.ts';
import { runVerdict } from '../verdict/run-verdict.ts';
import { PLAIN, type Scenario } from '../verdict/workload.ts';
import {
  type CaseReport,
  OUTAGE_MS,
  rollDuringAdminOutages,
  rollLastReplica,
  rollService,
} from './roll-in-hard-cases.ts';
import { type RolloutReport, rollReplicas } from './roll-replicas.ts';
import { rollWithVerdict, VERDICT_CASES, type VerdictCase, type VerdictReport } from './roll-with-verdict.ts';
import { type UpdateReport, updateGateways } from './update-gateways.ts';

const USAGE = `npm run rollout [-- --verdicts]
  Rolls simulated replicas, in easy and in hard cases, with and without a verdict, and updates two gateways behind
  HAProxy, all under load. Exits with 1 if a request failed that no bad engine failed, a drained replica got a request, a
  record is missing, or a verdict is wrong. Takes about eight minutes.
  --verdicts   only the rollouts with a verdict`;

/** The seeds of the workloads. */
const SEEDS = Array.from({ length: 200 }, (_, index) => index + 1);

const { verdicts: hasVerdictsOnly = false } = startProgram(USAGE, { verdicts: { type: 'boolean' } });
const areVerdictsRight = await rollVerdicts();
process.exitCode = areVerdictsRight && (hasVerdictsOnly || (await rollWithoutVerdicts())) ? 0 : 1;

/** Rolls with a verdict, then judges 200 seeded workloads of each kind. Returns whether each verdict is right. */
async function rollVerdicts(): Promise<boolean> {
  let isRight = true;
  for (const each of VERDICT_CASES) {
    const report = await rollWithVerdict(each);
    printVerdict(each, report);
    isRight &&= report.exitCodes.join() === each.exitCodes.join() && report.lost === report.lostByEngine;
  }
  const kinds: readonly (readonly [title: string, expected: string, scenario: Scenario])[] = [
    ['equal', 'good', PLAIN],
    ['20 % slower', 'bad', { ...PLAIN, slowness: 1.2 }],
    ['5 % of requests fail', 'bad', { ...PLAIN, errorShare: 0.05 }],
  ];
  const figures = kinds.map(([title, expected, scenario]) => {
    const right = SEEDS.filter((seed) => judgeSeed(scenario, seed) === expected).length;
    isRight &&= right >= 0.95 * SEEDS.length;
    return [`${title}: ${expected}`, `${right} of ${SEEDS.length}`] as const;
  });
  printFigures('The verdict on seeded workloads', figures);
  return isRight;
}

function judgeSeed(scenario: Scenario, seed: number): string {
  const settings = { falseAlarm: 1 / 1_000, blockS: 2, maxSeconds: 600, ignoresGood: false };
  return runVerdict(scenario, toRandom(seed), settings).kind;
}

function printVerdict({ title }: VerdictCase, report: VerdictReport): void {
  const { exitCodes, sentence, verdictAfterS, requests, lost, lostByEngine } = report;
  printFigures(title, [
    ['exit code', exitCodes.join(', then ')],
    ['vllm-0', sentence],
    ['seconds from the undrain to the verdict', verdictAfterS?.toFixed(0) ?? 'not undrained'],
    ['requests', requests],
    ['requests lost', lostByEngine === 0 ? lost : `${lost}, by the engine itself`],
  ]);
}

/** Rolls without a verdict, in easy and in hard cases, and updates gateways. Returns whether nobody noticed. */
async function rollWithoutVerdicts(): Promise<boolean> {
  const replicas = await rollReplicas(2);
  printFigures('Four replicas, rolled at 200 requests/s', [
    ['replicas restarted', replicas.restarted.length],
    ['requests', replicas.requests],
    ['requests per second', replicas.perSecond],
    ['requests failed', replicas.failures.length],
    ['requests to a drained replica', replicas.reachedWhileDrained],
    ['requests cut by stopping a replica', replicas.cut],
    ['records', replicas.records],
    ['records missing', replicas.missing],
  ]);
  printFailures(replicas.failures);

  const service = await rollService();
  printCase('Three replicas behind an SRV name, which a replica leaves while it restarts', service);
  const away = await rollDuringAdminOutages();
  printCase(`Four replicas, the admin API unreachable for ${OUTAGE_MS} ms at the time of each undrain`, away);
  const last = await rollLastReplica();
  printCase('The last replica that works, the other three being down: refused', last);

  const path = `${process.env.PATH}:/usr/sbin`;
  const hasBalancer = spawnSync('haproxy', ['-v'], { env: { PATH: path } }).status === 0;
  const update = hasBalancer ? await updateGateways() : null;
  if (update === null) console.log('\nTwo gateways behind HAProxy: skipped, haproxy is not installed');
  else {
    printFigures('Two gateways behind HAProxy, replaced one after the other at 200 requests/s', [
      ['exit codes of the gateways', update.exitCodes.join(', ')],
      ['requests', update.requests],
      ['requests per second', update.perSecond],
      ['requests failed', update.failures.length],
      ['records', update.records],
      ['records missing', update.missing],
    ]);
    printFailures(update.failures);
  }
  const areHardCasesRight =
    isRolled(service, 3) &&
    isRolled(away, 4) &&
    last.exitCode !== 0 &&
    isUnnoticed(last) &&
    last.restarted.length === 0;
  return areHardCasesRight && isFlawless(replicas) && (update === null || isUpdated(update));
}

function isFlawless(report: RolloutReport): boolean {
  return report.exitCode === 0 && isUnnoticed(report) && report.missing === 0;
}

function isRolled(report: CaseReport, count: number): boolean {
  return report.exitCode === 0 && isUnnoticed(report) && report.restarted.length === count;
}

function isUnnoticed({ failures, reachedWhileDrained, cut }: CaseReport): boolean {
  return failures.length + reachedWhileDrained + cut === 0;
}

function isUpdated({ exitCodes, failures, missing }: UpdateReport): boolean {
  return exitCodes.every((exitCode) => exitCode === 0) && failures.length + missing === 0;
}

function printCase(title: string, report: CaseReport): void {
  printFigures(title, [
    ['exit code of the rollout', report.exitCode],
    ['replicas restarted', report.restarted.length],
    ['requests', report.requests],
    ['requests failed', report.failures.length],
    ['requests to a drained replica', report.reachedWhileDrained],
    ['requests cut by stopping a replica', report.cut],
  ]);
  printFailures(report.failures);
}

import { spawnSync } from 'node:child_process';
import { startProgram } from '../support/program.ts';
import { printFailures, printFigures } from '../support/results.ts';
import {
  type CaseReport,
  OUTAGE_MS,
  rollDuringAdminOutages,
  rollLastReplica,
  rollService,
} from './roll-in-hard-cases.ts';
import { type RolloutReport, rollReplicas } from './roll-replicas.ts';
import { type UpdateReport, updateGateways } from './update-gateways.ts';

const USAGE = `npm run rollout
  Rolls simulated replicas, in easy and in hard cases, and updates two gateways behind HAProxy, all under load.
  Exits with 1 if a request failed, a drained replica got a request, or a record is missing. Takes about two minutes.`;

startProgram(USAGE, {});
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
process.exitCode =
  areHardCasesRight && isFlawless(replicas) && (update === null || isUpdated(update)) ? 0 : 1;

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

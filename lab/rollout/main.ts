import { spawnSync } from 'node:child_process';
import { type UpdateReport, updateGateways } from './gateways.ts';
import {
  AWAY_MS,
  type CaseReport,
  rollLastReplica,
  rollService,
  rollWhileGatewayIsAway,
} from './hard-cases.ts';
import { type RolloutReport, rollReplicas } from './replicas.ts';

/**
 * Rollouts of simulated replicas, in easy and in hard cases, and an update of two gateways behind HAProxy, all under
 * load: `npm run rollout`. Exits with 1 if a request failed, a drained replica got one, or a record is missing.
 */

const replicas = await rollReplicas(2);
const rows: [string, number | string][] = [
  ['replicas restarted', replicas.restarted.length],
  ['requests', replicas.requests],
  ['requests per second', replicas.perSecond],
  ['requests failed', replicas.failures.length],
  ['requests to a drained replica', replicas.reachedWhileDrained],
  ['requests cut by stopping a replica', replicas.cut],
  ['records', replicas.records],
  ['records missing', replicas.missing],
];
print('Four replicas, rolled by deploy/rollout.sh at 200 requests/s', rows, replicas.failures);

const service = await rollService();
printCase('Three replicas behind an SRV name, which a replica leaves while it restarts', service);
const away = await rollWhileGatewayIsAway();
printCase(`Four replicas, the admin API away for ${AWAY_MS} ms when each of them is to be undrained`, away);
const last = await rollLastReplica();
printCase('The last replica that works, the other three being dead: refused', last);

const hasBalancer =
  spawnSync('haproxy', ['-v'], { env: { PATH: `${process.env.PATH}:/usr/sbin` } }).status === 0;
const gateways = hasBalancer ? await updateGateways() : null;
if (gateways === null)
  console.log('\nTwo gateways behind HAProxy: skipped, there is no haproxy on this machine');
else {
  const updated: [string, number | string][] = [
    ['exit codes of the gateways', gateways.exitCodes.join(', ')],
    ['requests', gateways.requests],
    ['requests per second', gateways.perSecond],
    ['requests failed', gateways.failures.length],
    ['records', gateways.records],
    ['records missing', gateways.missing],
  ];
  print(
    'Two gateways behind HAProxy, replaced one after the other at 200 requests/s',
    updated,
    gateways.failures,
  );
}
const areHardCasesRight =
  isRolled(service, 3) &&
  isRolled(away, 4) &&
  last.exitCode !== 0 &&
  isUnnoticed(last) &&
  last.restarted.length === 0;
process.exitCode =
  areHardCasesRight && isFlawless(replicas) && (gateways === null || isUpdated(gateways)) ? 0 : 1;

function isFlawless(report: RolloutReport): boolean {
  const { exitCode, failures, reachedWhileDrained, cut, missing } = report;
  return exitCode === 0 && failures.length + reachedWhileDrained + cut + missing === 0;
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
  const counts: [string, number][] = [
    ['exit code of the script', report.exitCode],
    ['replicas restarted', report.restarted.length],
    ['requests', report.requests],
    ['requests failed', report.failures.length],
    ['requests to a drained replica', report.reachedWhileDrained],
    ['requests cut by stopping a replica', report.cut],
  ];
  print(title, counts, report.failures);
}

function print(title: string, rows: readonly [string, number | string][], failures: readonly string[]): void {
  console.log(`\n${title}`);
  for (const [name, value] of rows) console.log(`  ${name.padEnd(36)}${value}`);
  for (const failure of failures.slice(0, 10)) console.log(`  FAILED ${failure}`);
}

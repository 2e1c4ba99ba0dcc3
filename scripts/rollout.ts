import { spawnSync } from 'node:child_process';
import { type UpdateReport, updateGateways } from './rollout/gateways.ts';
import { type RolloutReport, rollReplicas } from './rollout/replicas.ts';

/**
 * A rollout of four simulated replicas, and an update of two gateways behind HAProxy, both under load: `npm run
 * rollout`. Exits with 1 if a request failed, a drained replica got one, or a record is missing.
 */

const replicas = await rollReplicas(2);
const rows: [string, number | string][] = [
  ['replicas restarted', replicas.restarted.length],
  ['requests', replicas.requests],
  ['requests a second', replicas.perSecond],
  ['requests failed', replicas.failures.length],
  ['requests to a drained replica', replicas.reachedWhileDrained],
  ['requests cut by stopping a replica', replicas.cut],
  ['records', replicas.records],
  ['records missing', replicas.missing],
];
print('Four replicas, rolled by deploy/rollout.sh at 200 requests/s', rows, replicas.failures);

const hasBalancer =
  spawnSync('haproxy', ['-v'], { env: { PATH: `${process.env.PATH}:/usr/sbin` } }).status === 0;
const gateways = hasBalancer ? await updateGateways() : null;
if (gateways === null)
  console.log('\nTwo gateways behind HAProxy: skipped, there is no haproxy on this machine');
else {
  const updated: [string, number | string][] = [
    ['exit codes of the gateways', gateways.exitCodes.join(', ')],
    ['requests', gateways.requests],
    ['requests a second', gateways.perSecond],
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
process.exitCode = isFlawless(replicas) && (gateways === null || isUpdated(gateways)) ? 0 : 1;

function isFlawless(report: RolloutReport): boolean {
  const { exitCode, failures, reachedWhileDrained, cut, missing } = report;
  return exitCode === 0 && failures.length + reachedWhileDrained + cut + missing === 0;
}

function isUpdated({ exitCodes, failures, missing }: UpdateReport): boolean {
  return exitCodes.every((exitCode) => exitCode === 0) && failures.length + missing === 0;
}

function print(title: string, rows: readonly [string, number | string][], failures: readonly string[]): void {
  console.log(`\n${title}`);
  for (const [name, value] of rows) console.log(`  ${name.padEnd(36)}${value}`);
  for (const failure of failures.slice(0, 10)) console.log(`  FAILED ${failure}`);
}

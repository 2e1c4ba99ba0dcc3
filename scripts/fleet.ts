import { AWAY_MS, rollThroughOutage } from './fleet/roll-through-outage.ts';

/**
 * A rollout of four simulated replicas behind two gateways that share a Redis server, which is killed in the middle
 * and comes back empty: `npm run fleet`. Exits with 1 if a request failed, or a replica was called safe to stop that
 * was not.
 */

const report = await rollThroughOutage();
const rows: readonly (readonly [string, number])[] = [
  ['replicas restarted', report.restarted.length],
  ['requests', report.requests],
  ['requests failed', report.failures.length],
  ['answers "safe to stop"', report.saidSafe],
  ['of these false', report.lies.length],
  ['requests to a drained replica', report.reachedWhileDrained],
  ['requests cut by stopping a replica', report.cut],
];
console.log(
  `\nFour replicas behind two gateways at 200 requests/s; Redis killed in the middle, back empty after ${AWAY_MS / 1_000} s`,
);
for (const [name, value] of rows) console.log(`  ${name.padEnd(36)}${value}`);
for (const line of [...report.failures, ...report.lies].slice(0, 10)) console.log(`  FAILED ${line}`);
const wrong = report.failures.length + report.lies.length + report.reachedWhileDrained + report.cut;
process.exitCode = report.exitCode === 0 && wrong === 0 ? 0 : 1;

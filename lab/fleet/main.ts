import { contradict } from './contradict.ts';
import { AWAY_MS, FOREIGN_MS, rollThroughOutage } from './roll-through-outage.ts';
import { LINK_MS, REQUESTS_PER_SECOND } from './stand.ts';

/**
 * Four simulated replicas behind two gateways that share a Redis server, to which one of them has a long link: `npm
 * run fleet`. First a rollout, during which Redis is killed and comes back empty, and a foreign field is put into it;
 * then drains and undrains that cross each other. Exits with 1 if a request failed, a replica was called safe to stop
 * that was not, a drained replica got a request, or a drain did not spread.
 */

type Row = readonly [name: string, value: number];

const rate = 2 * REQUESTS_PER_SECOND;
const rolled = await rollThroughOutage();
print(
  `Four replicas behind two gateways at ${rate} requests/s, one with a link of ${LINK_MS} ms to Redis; Redis killed in ` +
    `the middle, back empty after ${AWAY_MS / 1_000} s; a foreign field in it for ${FOREIGN_MS / 1_000} s`,
  [
    ['replicas restarted', rolled.restarted.length],
    ['requests', rolled.requests],
    ['requests failed', rolled.failures.length],
    ['answers "safe to stop"', rolled.saidSafe],
    ['of these false', rolled.lies.length],
    ['requests to a drained replica', rolled.reachedWhileDrained],
    ['requests cut by stopping a replica', rolled.cut],
  ],
);
const crossed = await contradict();
print('Drains and undrains that cross each other over that link, with foreign fields in Redis', [
  ['requests', crossed.requests],
  ['requests failed', crossed.failures.length],
  ['answers "safe to stop"', crossed.saidSafe],
  ['of these false', crossed.lies.length],
  ['drains that spread to both gateways', crossed.spread],
  ['drains that did not', crossed.notSpread.length],
  ['drains just after an undrain elsewhere', crossed.last],
  ['of these lost', crossed.lost.length],
  ['overtaken drains that did not say so', crossed.hidden.length],
]);

const problems = [
  ...[rolled.failures, rolled.lies, crossed.failures, crossed.lies],
  ...[crossed.notSpread, crossed.lost, crossed.hidden],
].flat();
for (const line of problems.slice(0, 10)) console.log(`  FAILED ${line}`);
const wrong = problems.length + rolled.reachedWhileDrained + rolled.cut;
process.exitCode = rolled.exitCode === 0 && wrong === 0 ? 0 : 1;

function print(title: string, rows: readonly Row[]): void {
  console.log(`\n${title}`);
  for (const [name, value] of rows) console.log(`  ${name.padEnd(40)}${value}`);
}

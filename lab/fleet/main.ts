import { startProgram } from '#testkit/programs/program.ts';
import { startProgress } from '#testkit/programs/progress.ts';
import { printFailures, printFigures } from '#testkit/programs/results.ts';
import { crossDrains } from './crossing-drains.ts';
import { FOREIGN_MS, OUTAGE_MS, rollThroughOutage } from './roll-through-outage.ts';
import { LINK_MS, REQUESTS_PER_SECOND } from './testbed.ts';

const USAGE = `npm run fleet
  Puts four simulated replicas behind two gateways that share a Redis server, one over a slow link. First a rollout,
  during which Redis is killed, comes back empty and gets a foreign field; then drains and undrains that cross each
  other. Exits with 1 if a request failed, a replica was wrongly called safe to stop, a drained replica got a request,
  or a drain did not reach both gateways. Needs redis-server. Takes about two minutes.`;

startProgram(USAGE, {});
const rate = 2 * REQUESTS_PER_SECOND;
const progress = startProgress(2);
const rolled = await progress.during('a rollout while Redis is lost', (tell) => rollThroughOutage({ tell }));
printFigures(
  `Four replicas behind two gateways at ${rate} requests/s, one with a link of ${LINK_MS} ms to Redis; Redis killed in ` +
    `the middle, back empty after ${OUTAGE_MS / 1_000} s; a foreign field in it for ${FOREIGN_MS / 1_000} s`,
  [
    ['replicas restarted', rolled.restarted.length],
    ['requests', rolled.requests],
    ['requests failed', rolled.failures.length],
    ['answers "safe to stop"', rolled.saidSafe],
    ['of these false', rolled.falseAnswers.length],
    ['requests to a drained replica', rolled.reachedWhileDrained],
    ['requests cut by stopping a replica', rolled.cut],
  ],
);
const crossed = await progress.during('drains and undrains that cross', crossDrains);
printFigures('Drains and undrains that cross each other over that link, with foreign fields in Redis', [
  ['requests', crossed.requests],
  ['requests failed', crossed.failures.length],
  ['answers "safe to stop"', crossed.saidSafe],
  ['of these false', crossed.falseAnswers.length],
  ['drains confirmed by both gateways', crossed.confirmed],
  ['drains not confirmed', crossed.unconfirmed.length],
  ['drains just after an undrain elsewhere', crossed.later],
  ['of these lost', crossed.lost.length],
  ['overtaken drains that did not say so', crossed.hidden.length],
]);

const failures = [
  ...[rolled.failures, rolled.falseAnswers, crossed.failures, crossed.falseAnswers],
  ...[crossed.unconfirmed, crossed.lost, crossed.hidden],
].flat();
printFailures(failures);
const problemCount = failures.length + rolled.reachedWhileDrained + rolled.cut;
process.exitCode = rolled.exitCode === 0 && problemCount === 0 ? 0 : 1;

import { describe, expect, test } from 'vitest';
import { AUTO_BOUND } from '#replicas/health';
import type { Silence } from '#replicas/silence';
import { watchSilences } from '#testkit/silence/run-silences.ts';

const MINUTE_S = 60;
const DAY_S = 24 * 60 * MINUTE_S;
const QUIET: Silence = { heardMs: null, waitingSinceMs: null };

/** A replica that the gateway looks at once per second, beside a peer that answers requests all the time. */
function createScene() {
  let nowMs = 1_000_000;
  const watch = watchSilences(AUTO_BOUND, () => nowMs);
  const look = (silence: Silence, seconds = 1, frozenForS = Number.NEGATIVE_INFINITY) => {
    nowMs += 1_000 * seconds;
    watch.look([silence, { heardMs: nowMs, waitingSinceMs: null }, QUIET, QUIET], frozenForS);
  };
  const wait = (seconds: number) => {
    const since = { heardMs: null, waitingSinceMs: nowMs };
    for (let waitedS = 0; waitedS < seconds; waitedS++) look(since);
  };
  return {
    /** A request waits for so long, without a byte; then it is given up. */
    giveUpAfter(seconds: number) {
      wait(seconds);
      look(QUIET);
    },
    /** A silence of so long that a byte ends. */
    endSilenceAfter(seconds: number) {
      wait(seconds);
      look({ heardMs: nowMs, waitingSinceMs: null });
    },
    /** A stream that goes on for so long, with a byte at each look. */
    stream(seconds: number) {
      for (let streamedS = 0; streamedS < seconds; streamedS++)
        look({ heardMs: nowMs + 1_000, waitingSinceMs: nowMs + 1_000 });
    },
    /** Nothing is asked of it for so long. */
    rest(seconds: number) {
      for (let restedS = 0; restedS < seconds; restedS++) look(QUIET);
    },
    /** The machine stands still for so long while a request waits; then bytes come. */
    standStill(seconds: number) {
      wait(1);
      look({ heardMs: nowMs + 1_000 * seconds, waitingSinceMs: null }, seconds);
    },
    /** It freezes with a request. After how many seconds it is found; null: not within ten minutes. */
    freeze() {
      const since = { heardMs: null, waitingSinceMs: nowMs };
      for (let frozenForS = 1; frozenForS <= 600 && watch.foundAfterS() === null; frozenForS++)
        look(since, 1, frozenForS);
      return watch.foundAfterS();
    },
    alarms: () => watch.falseAlarms(),
  };
}

test('a silence counts once requests have been watched to wait for a hundred times as long', () => {
  const early = createScene();
  early.stream(20 * MINUTE_S);
  early.rest(60 * MINUTE_S);
  expect(early.freeze()).toBeNull();
  const late = createScene();
  late.stream(26 * MINUTE_S);
  expect(late.freeze()).toBe(15);
});

test('a silence of minutes needs no more than 100 minutes of that', () => {
  const { stream, endSilenceAfter, freeze } = createScene();
  endSilenceAfter(100);
  stream(101 * MINUTE_S);
  expect(freeze()).toBe(300);
});

test('a silence counts when it is three times as long as the longest that a byte has ended', () => {
  const { stream, endSilenceAfter, freeze, alarms } = createScene();
  stream(101 * MINUTE_S);
  endSilenceAfter(10);
  endSilenceAfter(20);
  endSilenceAfter(59);
  expect(alarms()).toBe(0);
  expect(freeze()).toBe(177);
});

describe('nothing is learnt', () => {
  test('from a request that was given up', () => {
    const { stream, endSilenceAfter, giveUpAfter, freeze } = createScene();
    stream(101 * MINUTE_S);
    endSilenceAfter(14);
    giveUpAfter(40);
    expect(freeze()).toBe(42);
  });

  test('from a stand-still of the machine', () => {
    const { stream, standStill, freeze } = createScene();
    stream(101 * MINUTE_S);
    standStill(100);
    expect(freeze()).toBe(15);
  });
});

test('a silence that was taken for a freeze, and ended with a byte, is usual the next time', () => {
  const { stream, endSilenceAfter, alarms } = createScene();
  stream(101 * MINUTE_S);
  endSilenceAfter(40);
  expect(alarms()).toBe(1);
  endSilenceAfter(40);
  expect(alarms()).toBe(1);
});

test('what happened is known for a day at least, and for two at most', () => {
  const remembered = createScene();
  remembered.endSilenceAfter(20);
  remembered.rest(DAY_S - 120 * MINUTE_S);
  remembered.stream(101 * MINUTE_S);
  expect(remembered.freeze()).toBe(60);
  const forgotten = createScene();
  forgotten.endSilenceAfter(20);
  forgotten.rest(2 * DAY_S);
  forgotten.stream(101 * MINUTE_S);
  expect(forgotten.freeze()).toBe(15);
});

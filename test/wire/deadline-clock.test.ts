import { describe, expect, test } from 'vitest';
import { watchTimers } from '#testkit/timers.ts';
import { DeadlineClock, type Timed, type TimeSource, toTickMs } from '../../src/wire/deadline-clock.ts';
import { ScriptedTime } from './scripted-time.ts';

class Waiting implements Timed {
  clockIndex = -1;
  expiredCount = 0;
  deadlineMs: number;

  constructor(deadlineMs: number) {
    this.deadlineMs = deadlineMs;
  }

  onDeadline(): void {
    this.expiredCount++;
  }
}

describe('the deadline clock', () => {
  test('reports each deadline that has passed, once', () => {
    const time = new ScriptedTime();
    const clock = new DeadlineClock(100, time);
    const [early, late] = [new Waiting(150), new Waiting(1_000)];
    clock.watch(early);
    clock.watch(late);

    time.passTo(100);
    expect([early.expiredCount, late.expiredCount]).toEqual([0, 0]);
    time.passTo(200);
    time.passTo(300);
    expect([early.expiredCount, late.expiredCount]).toEqual([1, 0]);
  });

  test('lets sockets be read first: a deadline that is moved by then has not passed', () => {
    const time = new ScriptedTime();
    const clock = new DeadlineClock(100, time);
    const waiting = new Waiting(150);
    clock.watch(waiting);

    time.passTo(200, () => {
      waiting.deadlineMs = 500;
    });
    expect(waiting.expiredCount).toBe(0);
  });

  test('reports no unwatched deadline, and stops its timer when none is watched', () => {
    const time = new ScriptedTime();
    const clock = new DeadlineClock(100, time);
    const all = [new Waiting(50), new Waiting(50), new Waiting(50)];
    for (const waiting of all) clock.watch(waiting);

    clock.unwatch(all[0] as Waiting);
    clock.unwatch(all[0] as Waiting);
    time.passTo(100, () => clock.unwatch(all[2] as Waiting));
    expect(all.map(({ expiredCount }) => expiredCount)).toEqual([0, 1, 0]);
    clock.unwatch(all[1] as Waiting);
    expect(time.timers.size).toBe(0);
  });

  test('watches what is watched twice once, and goes on with the others when one is not watched any more', () => {
    const time = new ScriptedTime();
    const clock = new DeadlineClock(100, time);
    const [first, second, third] = [new Waiting(50), new Waiting(50), new Waiting(50)];
    for (const waiting of [first, first, second, third]) clock.watch(waiting);
    clock.unwatch(first);
    clock.unwatch(third);
    expect([first, second, third].map(({ clockIndex }) => clockIndex)).toEqual([-1, 0, -1]);
    expect(time.timers.size).toBe(1);
    time.passTo(100);
    expect([first, second, third].map(({ expiredCount }) => expiredCount)).toEqual([0, 1, 0]);
    clock.unwatch(second);
    expect(time.timers.size).toBe(0);
    clock.watch(first);
    expect(time.timers.size).toBe(1);
  });

  test('reports a deadline at its time, which is none from then on', () => {
    const time = new ScriptedTime();
    const clock = new DeadlineClock(100, time);
    const waiting = new Waiting(150);
    clock.watch(waiting);
    time.passTo(150);
    expect([waiting.expiredCount, waiting.deadlineMs]).toEqual([1, Number.POSITIVE_INFINITY]);
  });

  test('remembers the time that it was asked for last', () => {
    const time = new ScriptedTime();
    time.ms = 5;
    const clock = new DeadlineClock(100, time);
    time.ms = 7;
    expect(clock.cachedNowMs).toBe(5);
    expect(clock.nowMs()).toBe(7);
    expect(clock.cachedNowMs).toBe(7);
  });

  test('checks at another interval from when it is told, and not before there is something to check', () => {
    const running: number[] = [];
    let begunCount = 0;
    const time: TimeSource = {
      nowMs: () => 0,
      every(intervalMs) {
        begunCount++;
        running.push(intervalMs);
        return () => running.splice(running.indexOf(intervalMs), 1);
      },
      afterReads: (callback) => callback(),
    };
    const clock = new DeadlineClock(100, time);
    clock.setTick(200);
    expect(running).toEqual([]);
    const waiting = new Waiting(1);
    clock.watch(waiting);
    expect(running).toEqual([200]);
    clock.setTick(200);
    expect([running, begunCount]).toEqual([[200], 1]);
    clock.setTick(300);
    expect(running).toEqual([300]);
    clock.unwatch(waiting);
    expect(running).toEqual([]);
    new DeadlineClock(100, time).watch(new Waiting(1));
    expect(running).toEqual([100]);
  });

  test('leaves no timer of the system behind', () => {
    const ticks = watchTimers('Interval', 60_000);
    const clock = new DeadlineClock(60_000);
    const waiting = new Waiting(Number.POSITIVE_INFINITY);
    clock.watch(waiting);
    expect(ticks).toMatchObject({ set: 1, left: 1 });
    clock.unwatch(waiting);
    expect(ticks).toMatchObject({ set: 1, left: 0 });
  });

  test('has the time of the system unless it is given another, and reads sockets before a deadline', async () => {
    const clock = new DeadlineClock(5);
    const startMs = performance.now();
    expect(clock.nowMs() - startMs).toBeLessThan(1_000);
    const steps: string[] = [];
    const expired = Promise.withResolvers<void>();
    const waiting = new Waiting(clock.nowMs() + 10);
    waiting.onDeadline = () => {
      steps.push('deadline');
      expired.resolve();
    };
    clock.watch(waiting);
    await expired.promise;
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(10);
    clock.unwatch(waiting);
    expect(steps).toEqual(['deadline']);
  });

  test('checks ten times per shortest time-out, within limits', () => {
    expect(toTickMs([15_000, 1_000, 75_000])).toBe(100);
    expect(toTickMs([20])).toBe(5);
    expect(toTickMs([60_000])).toBe(500);
    expect(toTickMs([0, 2_000])).toBe(200);
    expect(toTickMs([1])).toBe(5);
    expect(toTickMs([1_009])).toBe(100);
  });
});

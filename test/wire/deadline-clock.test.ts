import { describe, expect, test } from 'vitest';
import { DeadlineClock, type Timed, toTickMs } from '../../src/wire/deadline-clock.ts';
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

  test('checks ten times per shortest time-out, within limits', () => {
    expect(toTickMs([15_000, 1_000, 75_000])).toBe(100);
    expect(toTickMs([20])).toBe(5);
    expect(toTickMs([60_000])).toBe(500);
    expect(toTickMs([0, 2_000])).toBe(200);
  });
});

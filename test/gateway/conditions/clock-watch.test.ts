import { expect, test } from 'vitest';
import { ConditionBoard, type Finding } from '#conditions';
import { ClockWatch } from '../../../src/gateway/conditions/machine-conditions.ts';

function createWatch() {
  const clocks = { now: 0, epoch: 1_700_000_000_000 };
  const raised: Finding[] = [];
  const watch = new ClockWatch(
    { raise: (finding) => void raised.push(finding), clear: () => undefined },
    { nowMs: () => clocks.now, epochMs: () => clocks.epoch },
  );
  return {
    raised,
    pass(nowMs: number, epochMs = nowMs) {
      clocks.now += nowMs;
      clocks.epoch += epochMs;
      watch.look();
    },
  };
}

test('a clock that was set is told once, with the direction', () => {
  const { pass, raised } = createWatch();
  pass(1_000);
  pass(1_000, 3_600_999.7);
  pass(1_000);
  pass(1_000, -4_000);
  expect(raised.map(({ figures }) => figures)).toEqual([
    { direction: 'forward', step: 3_600 },
    { direction: 'back', step: 5 },
  ]);
});

test('a clock that is corrected little by little, and a thread that was held up, are no step', () => {
  const { pass, raised } = createWatch();
  for (let second = 0; second < 100; second += 1) pass(1_000, 1_000.5);
  pass(60_000);
  expect(raised).toEqual([]);
});

test('a clock that is set again soon is told again, since then', () => {
  const clocks = { now: 0, epoch: 1_700_000_000_000 };
  const told: string[] = [];
  const collaborators = { nowMs: () => clocks.now, epochMs: () => clocks.epoch };
  const board = new ConditionBoard({
    ...collaborators,
    toShown: (text) => text,
    onChange: ({ kind, condition }) => told.push(`${kind}: ${condition.sentence}`),
    onDefect: () => expect.unreachable(),
  });
  const watch = new ClockWatch(board, collaborators);
  for (const stepMs of [3_600_000, -3_600_000]) {
    clocks.now += 1_000;
    clocks.epoch += 1_000 + stepMs;
    watch.look();
  }
  expect(told).toEqual([
    'begins: the clock moved forward by 60 min',
    'ends: the clock moved forward by 60 min',
    'begins: the clock moved back by 60 min',
  ]);
  expect(board.current).toMatchObject([{ sinceEpochMs: clocks.epoch }]);
});

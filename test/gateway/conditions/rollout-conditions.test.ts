import { expect, test } from 'vitest';
import { RolloutBoard } from '#rollout-board';
import { otherDriver, replicaFacts, rolloutFacts } from '#testkit/rollout-facts.ts';
import { createRolloutProducer } from '../../../src/gateway/conditions/rollout-conditions.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const MINUTE_MS = 60_000;

function createWatch() {
  let nowMs = 0;
  const board = new RolloutBoard({ nowMs: () => nowMs });
  const produce = createRolloutProducer(board, { nowMs: () => nowMs, epochMs: () => START + nowMs });
  return {
    board,
    pass: (ms: number) => {
      nowMs += ms;
    },
    told: () => [...produce()].map(({ subject, figures }) => [subject, figures]),
  };
}

const BEGUN = [replicaFacts('a', { seq: 2, stage: 'held' }), replicaFacts('b')];
const STOPPED = rolloutFacts({
  seq: 2,
  state: 'stopped',
  ended_at: '2026-01-01T00:00:00Z',
  replicas: BEGUN,
  problem: { kind: 'bad', replica: 'a', sentence: 'slower than its peers', advice: null },
});

test('a rollout that stops is told with the replica and its reason, for an hour', () => {
  const { board, told, pass } = createWatch();
  board.report(rolloutFacts({ replicas: BEGUN }), null);
  expect(told()).toEqual([]);
  board.report(STOPPED, null);
  expect(told()).toEqual([['a', { reason: 'slower than its peers' }]]);
  pass(59 * MINUTE_MS);
  expect(told()).toHaveLength(1);
  pass(MINUTE_MS);
  expect(told()).toEqual([]);
});

test('it is over when it goes on, is aborted, or another one of the same replicas begins', () => {
  for (const end of [
    rolloutFacts({ run: 2, seq: 9, driver: otherDriver(), replicas: BEGUN }),
    rolloutFacts({ seq: 3, state: 'aborted', replicas: [] }),
    rolloutFacts({ id: '0000000b', started_at: '2026-01-01T00:00:09Z' }),
  ]) {
    const { board, told } = createWatch();
    board.report(STOPPED, null);
    expect(told()).toHaveLength(1);
    board.report(end, null);
    expect(told()).toEqual([]);
  }
});

test('one that is done, or that changed nothing, has not stopped', () => {
  const { board, told } = createWatch();
  board.report(rolloutFacts({ state: 'done', replicas: BEGUN }), null);
  board.report(
    rolloutFacts({
      id: '0000000b',
      state: 'stopped',
      ended_at: '2026-01-01T00:00:00Z',
      replicas: [replicaFacts('c')],
    }),
    null,
  );
  expect(told()).toEqual([]);
});

test('one that nobody drives any more has stopped', () => {
  const { board, told, pass } = createWatch();
  board.report(
    rolloutFacts({ replicas: [replicaFacts('a', { stage: 'restarted' }), replicaFacts('b')] }),
    null,
  );
  pass(29_999);
  expect(told()).toEqual([]);
  pass(1);
  expect(told()).toEqual([['a', { reason: 'ann@ops-1, who drives it, is not heard any more' }]]);
  pass(60 * MINUTE_MS);
  expect(told()).toEqual([]);
});

import { describe, expect, test } from 'vitest';
import { hasVanished, RolloutBoard } from '#rollout-board';
import { otherDriver, replicaFacts, rolloutFacts } from '#testkit/rollout-facts.ts';

function createBoard() {
  let nowMs = 1_000;
  const board = new RolloutBoard({ nowMs: () => nowMs, epochMs: () => Date.parse('2026-01-01T01:00:00Z') });
  const pass = (ms: number) => {
    nowMs += ms;
  };
  const vanished = (id = '0000000a') => {
    const known = board.find(id);
    return known !== null && hasVanished(known, nowMs);
  };
  return { board, pass, vanished };
}

describe('a report', () => {
  test('changes what it has, and leaves the other replicas as they are', () => {
    const { board } = createBoard();
    board.report(rolloutFacts(), 'ops');
    const outcome = board.report(
      rolloutFacts({ seq: 5, sentence: '1 of 2', replicas: [replicaFacts('b', { seq: 5, stage: 'done' })] }),
      'other',
    );
    expect(outcome).toMatchObject({ kind: 'taken', isComplete: true });
    expect(board.find('0000000a')).toMatchObject({
      tokenName: 'ops',
      facts: {
        sentence: '1 of 2',
        replicas: [
          { name: 'a', stage: 'waiting' },
          { name: 'b', stage: 'done' },
        ],
      },
    });
  });

  test('asks for the rest while replicas are missing, as after a restart', () => {
    const { board } = createBoard();
    expect(board.report(rolloutFacts({ replicas: [replicaFacts('b')] }), null)).toMatchObject({
      isComplete: false,
    });
    expect(board.report(rolloutFacts({ seq: 2 }), null)).toMatchObject({ isComplete: true });
  });

  test('of an earlier run, or of a second driver, is told that the rollout goes on elsewhere', () => {
    const { board, pass } = createBoard();
    board.report(rolloutFacts(), null);
    expect(board.report(rolloutFacts({ driver: otherDriver() }), null).kind).toBe('taken_over');
    expect(board.report(rolloutFacts({ run: 2, driver: otherDriver() }), null).kind).toBe('driven');
    pass(30_000);
    expect(board.report(rolloutFacts({ run: 2, seq: 9, driver: otherDriver() }), null).kind).toBe('taken');
    expect(board.report(rolloutFacts({ seq: 10 }), null).kind).toBe('taken_over');
  });

  test('of the next run is taken at once if its driver knows that the one before has ended', () => {
    const { board } = createBoard();
    board.report(rolloutFacts(), null);
    const next = rolloutFacts({ run: 2, seq: 9, driver: otherDriver('1'.repeat(16)) });
    expect(board.report(next, null).kind).toBe('taken');
  });
});

describe('two rollouts', () => {
  const other = { id: '0000000b', started_at: '2026-01-01T00:00:01Z', driver: otherDriver() };

  test('of the same replicas exclude each other, also after the driver of the first has vanished', () => {
    const { board, pass } = createBoard();
    board.report(rolloutFacts(), null);
    pass(60_000);
    const outcome = board.report(rolloutFacts({ ...other, replicas: [replicaFacts('b')] }), null);
    expect(outcome).toMatchObject({ kind: 'conflict', names: ['b'], other: { facts: { id: '0000000a' } } });
    expect(board.report(rolloutFacts({ ...other, replicas: [replicaFacts('c')] }), null).kind).toBe('taken');
  });

  test('that began at once on two gateways: the later one gives way when they hear of each other', () => {
    const { board } = createBoard();
    board.report(rolloutFacts(other), null);
    board.learn({ facts: rolloutFacts(), tokenName: null, heardMs: 1_000 });
    expect(board.report(rolloutFacts({ ...other, seq: 2 }), null).kind).toBe('conflict');
    expect(board.report(rolloutFacts({ seq: 2 }), null).kind).toBe('taken');
  });

  test('may follow each other, and one that is given up is over', () => {
    const { board } = createBoard();
    board.report(rolloutFacts(), null);
    const first = rolloutFacts();
    const outcome = board.report(rolloutFacts({ ...other, given_up: [first.trace_id] }), null);
    expect(outcome.kind).toBe('taken');
    expect(board.find(first.id)?.facts).toMatchObject({ state: 'aborted', ask: { kind: 'abort' } });
    expect(board.rollouts.map(({ facts }) => facts.id)).toEqual(['0000000b', '0000000a']);
  });
});

describe('what is asked of a rollout', () => {
  test('reaches its driver with the answer to its next report', () => {
    const { board } = createBoard();
    board.report(rolloutFacts(), null);
    board.ask('0000000a', 'pause', 'ops');
    expect(board.report(rolloutFacts({ seq: 2 }), null)).toMatchObject({
      rollout: { facts: { ask: { kind: 'pause', version: 1, by: 'ops' } } },
    });
  });

  test('is refused of one that is not known, or over', () => {
    const { board } = createBoard();
    expect(board.ask('0000000a', 'pause', null)).toBe('rollout_not_found');
    board.report(rolloutFacts({ state: 'stopped' }), null);
    expect(board.ask('0000000a', 'pause', null)).toBe('rollout_over');
    expect(board.ask('0000000a', 'abort', 'ops')).toMatchObject({ facts: { state: 'aborted' } });
    expect(board.ask('0000000a', 'abort', null)).toBe('rollout_over');
  });

  test('ends a rollout at once that nobody drives; a driver that comes back hears of it', () => {
    const { board, pass, vanished } = createBoard();
    board.report(rolloutFacts(), null);
    pass(29_999);
    expect(vanished()).toBe(false);
    pass(1);
    expect(vanished()).toBe(true);
    board.ask('0000000a', 'abort', 'ops');
    const back = board.report(rolloutFacts({ seq: 2 }), null);
    expect(back).toMatchObject({
      rollout: { facts: { state: 'aborted', sentence: 'ops aborted the rollout', ask: { kind: 'abort' } } },
    });
    expect(board.report(rolloutFacts({ run: 2, seq: 9, driver: otherDriver() }), null).kind).toBe('over');
  });

  test('holds for one run: who resumes a rollout wants it to go on', () => {
    const { board } = createBoard();
    board.report(rolloutFacts(), null);
    board.ask('0000000a', 'pause', 'ops');
    board.report(rolloutFacts({ seq: 2, state: 'stopped' }), null);
    const next = rolloutFacts({ run: 2, seq: 9, driver: otherDriver() });
    expect(board.report(next, null)).toMatchObject({
      rollout: { facts: { state: 'running', ask: { kind: 'go', version: 2 } } },
    });
  });
});

test('the oldest rollout that is not under way makes room', () => {
  const { board } = createBoard();
  for (let at = 1; at <= 60; at++) {
    const id = at.toString(16).padStart(8, '0');
    const started_at = `2026-01-01T00:00:${String(at - 1).padStart(2, '0')}Z`;
    const state = at === 1 ? 'running' : 'done';
    board.report(rolloutFacts({ id, started_at, state, replicas: [replicaFacts(`r${at}`)] }), null);
  }
  const ids = board.rollouts.map(({ facts }) => facts.id);
  expect(ids).toHaveLength(50);
  expect(ids.at(-1)).toBe('00000001');
  expect(ids[0]).toBe('0000003c');
});

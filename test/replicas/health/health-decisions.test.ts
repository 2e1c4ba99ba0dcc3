import { expect, test } from 'vitest';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { type HealthAction, HealthDecisions } from '../../../src/replicas/health/health-decisions.ts';

/** The replica `a`, and what is decided of it at a time that the test sets. */
function createScene() {
  let [nowMs, stepMs] = [1_000_000, 0];
  const { registry, shared } = createPools([toReplicaConfig('a')]);
  shared.health.configure({
    passive: true,
    active: true,
    failures: 3,
    coolDownMs: 0,
    frozenAfterMs: null,
    peers: null,
  });
  const lines: object[] = [];
  const actions: HealthAction[] = [];
  const note = (level: string) => (fields: object, msg: string) => lines.push({ level, msg, ...fields });
  const decisions = new HealthDecisions({
    registry,
    nowMs: () => nowMs,
    epochMs: () => nowMs + stepMs,
    log: { info: note('info') },
    onAction: (action) => actions.push(action),
  });
  const slot = registry.find('a')?.slot ?? -1;
  return {
    lines,
    actions,
    decisions,
    health: shared.health,
    slot,
    replica: registry.replicas[0],
    pass: (ms: number) => {
      nowMs += ms;
    },
    setClock: (byMs: number) => {
      stepMs += byMs;
    },
  };
}

test('each decision is a line, a count and an action that lasts as long as what it is about', () => {
  const { lines, actions, decisions, replica, pass } = createScene();
  decisions.note({ replica: 'a', judge: 'connections', verdict: 'failing', forMs: 40 });
  pass(5_000);
  decisions.note({ replica: 'a', judge: 'connections', verdict: 'ok', forMs: 0 });
  decisions.note({ replica: 'a', judge: 'connections', verdict: 'failing', forMs: 0 });

  const of = { replica: 'a', judge: 'connections', inflight: 0 };
  expect(lines).toEqual([
    { level: 'info', msg: 'replica failing: tried last', ...of, lasted_ms: 40 },
    { level: 'info', msg: 'replica ok: no longer tried last', ...of, lasted_ms: 5_000 },
    { level: 'info', msg: 'replica failing: tried last', ...of, lasted_ms: 0 },
  ]);
  expect(actions).toMatchObject([
    { action: 'replica_failing', judge: 'connections', verdict: 'failing', startEpochMs: 999_960 },
    { action: 'replica_ok', judge: 'connections', verdict: 'ok', startEpochMs: 1_000_000 },
    { action: 'replica_failing', startEpochMs: 1_005_000 },
  ]);
  expect(replica && decisions.countsOf(replica)).toEqual([
    { judge: 'connections', verdict: 'failing', count: 2 },
    { judge: 'connections', verdict: 'ok', count: 1 },
  ]);
});

test('what is told to have lasted does not change when the time of day is set', () => {
  const { lines, actions, decisions, pass, setClock } = createScene();
  decisions.note({ replica: 'a', judge: 'probes', verdict: 'failing', forMs: 0 });
  pass(5_000);
  setClock(-3_600_000);
  decisions.note({ replica: 'a', judge: 'probes', verdict: 'ok', forMs: 0 });
  expect(lines[1]).toMatchObject({ lasted_ms: 5_000 });
  expect(actions[1]).toMatchObject({ startEpochMs: 1_000_000 - 3_600_000 });
});

test('a replica that still fails by another judge is not called ok', () => {
  const { lines, decisions, health, slot } = createScene();
  health.markFailing(slot, 'probes');
  decisions.note({ replica: 'a', judge: 'connections', verdict: 'ok', forMs: 0 });
  expect(lines).toMatchObject([
    { level: 'info', msg: 'replica still failing: tried last', judge: 'connections', still: ['probes'] },
  ]);
});

test('a decision on a replica that was removed meanwhile is none', () => {
  const { lines, actions, decisions } = createScene();
  decisions.note({ replica: 'gone', judge: 'connections', verdict: 'failing', forMs: 0 });
  expect([lines, actions]).toEqual([[], []]);
});

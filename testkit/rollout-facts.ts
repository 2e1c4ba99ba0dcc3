import type { ReplicaFacts, RolloutFacts } from '#rollout-board/facts';

/** A replica that has not been begun. */
export function replicaFacts(name: string, changes: Partial<ReplicaFacts> = {}): ReplicaFacts {
  return {
    name,
    seq: 1,
    stage: 'waiting',
    phase: 'waiting',
    since: '2026-01-01T00:00:00Z',
    text: 'waits',
    verdict: null,
    figures: {},
    steps: [],
    ...changes,
  };
}

/** A rollout of `a` and `b` that has just begun. */
export function rolloutFacts(changes: Partial<RolloutFacts> = {}): RolloutFacts {
  const { id = '0000000a' } = changes;
  const replicas = changes.replicas ?? [replicaFacts('a'), replicaFacts('b')];
  return {
    id,
    trace_id: id.padEnd(32, '1'),
    root_span_id: '1'.repeat(16),
    run: 1,
    seq: 1,
    driver: { id: '1'.repeat(16), user: 'ann', host: 'ops-1', pid: 7, replaces: null },
    started_at: '2026-01-01T00:00:00Z',
    ended_at: null,
    state: 'running',
    sentence: '0 of 2 replicas done',
    problem: null,
    plan: {
      verdict: 'strict',
      max_unavailable: 1,
      ramp_ms: 0,
      drain_ms: 0,
      restart_ms: 0,
      compare_ms: 0,
      is_probed: false,
      is_forced: false,
      reason: null,
      restarted_by: 'command',
      has_rollback: false,
      after_rollback: 'stop',
      shadow: null,
      accepted: [],
    },
    ask: { kind: 'go', version: 0, by: null },
    given_up: [],
    replica_count: 2,
    ...changes,
    replicas,
  };
}

/** Another process that drives it. */
export const otherDriver = (replaces: string | null = null): RolloutFacts['driver'] => ({
  id: '2'.repeat(16),
  user: 'bob',
  host: 'ops-2',
  pid: 8,
  replaces,
});

/** What the driver reports of a rollout that has stopped at `a`; with `state: 'aborted'`, that it was given up there. */
export function stoppedFacts(state: 'stopped' | 'aborted' = 'stopped'): RolloutFacts {
  return rolloutFacts({
    state,
    seq: state === 'stopped' ? 2 : 3,
    ended_at: new Date().toISOString(),
    problem: { kind: 'bad', replica: 'a', sentence: 'slower than its peers', advice: null },
    replicas: [
      replicaFacts('a', { stage: 'undrained', phase: 'waiting', text: 'is slower', seq: 2 }),
      replicaFacts('b'),
    ],
  });
}

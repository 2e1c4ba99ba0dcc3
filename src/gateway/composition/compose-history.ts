import { join } from 'node:path';
import { type PresentFact, RecordedHistory } from '#history';
import type { Telemetry } from '#otel';
import type { ReplicaControl } from '#replicas/control';
import type { DrainState } from '#replicas/drain-state';
import type { Composition } from './gateway-collaborators.ts';
import { guarded } from './observe-record.ts';

/** Composes the gateway's own memory, which hears of every record and every action. It holds up neither start nor request. */
export function composeHistory(
  { inEffect, collaborators: { log }, parts, events, board, version }: Composition,
  { instanceId }: Pick<Telemetry, 'instanceId'>,
  replicas: Pick<ReplicaControl, 'drains' | 'trials'>,
): RecordedHistory {
  const present = (): readonly PresentFact[] => [
    ...replicas.trials.running,
    ...board.current.map((condition) => ({ ...condition, sinceMs: condition.sinceEpochMs })),
    ...Array.from(replicas.drains.all, ([replica, drain]) => toFact(replica, drain)),
  ];
  const path = join(inEffect.config.stateDir, 'history.db');
  const history = new RecordedHistory({ path, version, instanceId, nowMs: Date.now, present, log });
  parts.add('history', {
    start: () => history.configure(inEffect.config.history),
    stop: () => history.stop(),
  });
  inEffect.onValues((next) => history.configure(next.history));
  events.on(
    'record',
    guarded((ended) => history.record(ended), log),
  );
  events.on('loss', (loss) => history.loss(loss));
  events.on('action', (action) => history.action(action));
  // From now on: it was called by the clock of another gateway, and comes late after an outage of Redis.
  events.on('drain', (...drain) => history.note({ ...toFact(...drain), sinceMs: Date.now() }));
  return history;
}

function toFact(replica: string, { drained, reason, since }: DrainState): PresentFact {
  return { replica, isDrained: drained, reason, sinceMs: Date.parse(since ?? '') || 0 };
}

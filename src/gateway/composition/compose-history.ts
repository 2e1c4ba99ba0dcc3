import { join } from 'node:path';
import { RecordedHistory } from '#history';
import type { Telemetry } from '#otel';
import type { Composition } from './gateway-collaborators.ts';
import { guarded } from './observe-record.ts';

/** Composes the gateway's own memory, which hears of every record and every action. It holds up neither start nor request. */
export function composeHistory(
  { inEffect, collaborators: { log }, parts, events, version }: Composition,
  { instanceId }: Pick<Telemetry, 'instanceId'>,
): RecordedHistory {
  const path = join(inEffect.config.stateDir, 'history.db');
  const history = new RecordedHistory({ path, version, instanceId, nowMs: Date.now, log });
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
  return history;
}

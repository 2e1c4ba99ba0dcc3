import type { LimitRows } from '#access/limits';
import { BackgroundWork, createBackgroundFile } from '#background';
import { orStartError } from '#base';
import type { Telemetry } from '#otel';
import { createParkedSpanEnder } from '#otel/span';
import type { ReplicaControl } from '#replicas/control';
import { SharedState } from '#replicas/shared';
import { toRecorderSettings } from '../serving/settings.ts';
import type { Composition } from './gateway-collaborators.ts';

interface BackgroundSurroundings {
  readonly replicas: Pick<ReplicaControl, 'registry' | 'backgroundCounts'>;
  readonly limitRows: LimitRows;
  readonly telemetry: Telemetry;
}

/** Composes what follows responses in the background. Rejects with a StartError if its file cannot be used. */
export async function composeBackground(
  { inEffect, collaborators: { log }, parts, memory, onStateWrite }: Composition,
  { replicas, limitRows, telemetry }: BackgroundSurroundings,
): Promise<BackgroundWork> {
  const { config } = inEffect;
  const { registry, backgroundCounts: counts } = replicas;
  const work = new BackgroundWork({
    registry,
    counts,
    limitRows,
    endParkedSpan: createParkedSpanEnder(toRecorderSettings(config), { consumer: telemetry.consumer, log }),
    log,
    currency: config.currency,
    shared: new SharedState(memory.replicas),
    file: createBackgroundFile(config.stateDir, log, onStateWrite),
    limitMs: () => inEffect.config.limits.backgroundMs,
  });
  // Those that cannot be stored leave their records now.
  parts.add('background', { stop: () => work.close() });
  await orStartError('responses in the background', work.restore());
  return work;
}

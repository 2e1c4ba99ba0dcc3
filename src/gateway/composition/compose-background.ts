import type { Logger } from 'pino';
import type { LimitRows } from '#access';
import { BackgroundWork, createBackgroundFile } from '#background';
import { orStartError } from '#base';
import type { Telemetry } from '#otel';
import { startRecorder } from '#otel/span';
import type { ReplicaControl } from '#replicas/control';
import { SharedState } from '#replicas/shared';
import type { ServingMemory } from '../serving/serving-memory.ts';
import { toRecorderSettings } from '../serving/settings.ts';
import type { ConfigInEffect } from './config-in-effect.ts';

interface BackgroundSurroundings {
  readonly replicas: Pick<ReplicaControl, 'registry' | 'backgroundCounts'>;
  readonly limitRows: LimitRows;
  readonly memory: ServingMemory;
  readonly telemetry: Telemetry;
  readonly log: Logger;
  /** Gets what stops the parts again. */
  readonly started: AsyncDisposableStack;
}

/** Composes what follows responses in the background. Rejects with a StartError if its file cannot be used. */
export async function composeBackground(
  inEffect: ConfigInEffect,
  { replicas, limitRows, memory, telemetry, log, started }: BackgroundSurroundings,
): Promise<BackgroundWork> {
  const { config } = inEffect;
  const { registry, backgroundCounts: counts } = replicas;
  const recorder = startRecorder(toRecorderSettings(config), { consumer: telemetry.consumer, log });
  started.defer(() => recorder.shutdown());
  const work = new BackgroundWork({
    ...{ registry, counts, limitRows, recorder, log },
    shared: new SharedState(memory.replicas),
    file: createBackgroundFile(config.stateDir, log),
    limitMs: () => inEffect.config.limits.backgroundMs,
  });
  started.defer(() => work.close());
  await orStartError('responses in the background', work.restore());
  return work;
}

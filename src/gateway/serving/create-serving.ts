import { PLANE_CALLS } from './calls.ts';
import { toDirectCalls } from './channel.ts';
import { createServingWorker } from './rehearsed.ts';
import type { Serving, ServingCollaborators, ServingSettings } from './serving.ts';

/** Creates the data plane whose single worker is this thread. */
export function createServing(settings: ServingSettings, collaborators: ServingCollaborators): Serving {
  const worker = createServingWorker(settings, collaborators);
  return {
    ...worker,
    all: toDirectCalls(PLANE_CALLS, worker),
    eventLoopTimes() {
      const { active, idle } = performance.eventLoopUtilization();
      return [{ worker: settings.worker + 1, activeMs: active, idleMs: idle }];
    },
  };
}

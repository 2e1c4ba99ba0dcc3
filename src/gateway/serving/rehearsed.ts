import { rehearse } from '#rehearsal';
import type { WorkerCalls } from './calls.ts';
import { createWorker, type ServingCollaborators, type ServingSettings } from './serving.ts';
import { allocateServingMemory } from './serving-memory.ts';

const nothing = () => undefined;
const SILENT = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Creates the worker of the current thread that serves clients; by its settings, it rehearses before it listens. */
export function createServingWorker(
  settings: ServingSettings,
  collaborators: ServingCollaborators,
): WorkerCalls {
  const worker = createWorker(settings, collaborators);
  if (!settings.rehearses) return worker;
  return {
    ...worker,
    async listen(address) {
      try {
        await rehearse(createRehearsedWorker(settings));
      } catch (error) {
        const reason = error instanceof Error ? error.message : 'unknown';
        collaborators.log.debug({ reason }, 'rehearsal ended early: the first requests take longer');
      }
      return await worker.listen(address);
    },
  };
}

/** A worker by the same settings, which everyone may use, and whose records nobody gets. */
function createRehearsedWorker(settings: ServingSettings): WorkerCalls {
  const { config } = settings;
  let seq = 0;
  return createWorker(
    {
      ...settings,
      worker: 0,
      memory: allocateServingMemory(1, config.limits),
      config: { ...config, jwt: null, tenantLimits: null },
      clients: null,
      jwtKeys: null,
      tls: null,
    },
    {
      consumer: {
        begin: nothing,
        discard: nothing,
        consume: nothing,
        number(record) {
          record.instance = 'rehearsal';
          record.seq = seq;
          seq += 1;
        },
      },
      control: {
        onHealth: nothing,
        onBackground: nothing,
        onShadow: nothing,
        refreshKeys: async () => undefined,
        limitRowOf: async () => null,
        tellUsage: async () => ({ status: 404, body: '' }),
      },
      log: SILENT,
    },
  );
}

import type { SimulatedReplicaSettings } from '#simulate';
import { createSimulatedReplica } from '#simulate';
import type { SimulatedReplica } from '../src/simulate/create-replica.ts';
import type { ServedRequest, SimulatedReplicaCollaborators } from '../src/simulate/settings.ts';
import { EventLog } from './event-log.ts';

/** A running simulated replica, with a log of the requests it has served. */
export interface StartedSimulation extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  readonly replica: SimulatedReplica;
  /** The requests that have ended, oldest first. */
  readonly served: EventLog<ServedRequest>;
}

/** Starts a simulated replica that serves the model `m` at once, unless the settings say otherwise. */
export async function startSimulatedReplica(
  settings: Partial<SimulatedReplicaSettings> = {},
  collaborators: Partial<SimulatedReplicaCollaborators> = {},
): Promise<StartedSimulation> {
  const served = new EventLog<ServedRequest>();
  const { name = 'a' } = settings;
  const replica = createSimulatedReplica(
    { ttftMs: 0, gapMs: 0, tokens: 8, models: ['m'], name, ...settings },
    { onServed: (request) => served.push(request), ...collaborators },
  );
  const { url } = await replica.start();
  return { name, url, replica, served, [Symbol.asyncDispose]: () => replica.close() };
}

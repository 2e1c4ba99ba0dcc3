import { type StartedSimulation, startSimulatedReplica } from '#testkit/simulated-replica.ts';
import type { StartedGateway } from '#testkit/start-gateway.ts';

/** Requests that a load has open at a time. */
export const CONCURRENCY = 16;

/** Starts a simulated replica for each of the settings. */
export async function startSimulations(
  settings: readonly Parameters<typeof startSimulatedReplica>[0][],
): Promise<StartedSimulation[] & AsyncDisposable> {
  const simulations = await Promise.all(settings.map((one) => startSimulatedReplica(one)));
  return Object.assign(simulations, {
    [Symbol.asyncDispose]: async () => {
      await Promise.all(simulations.map(({ replica }) => replica.close()));
    },
  });
}

/** The replicas as the configuration names them. */
export const configured = (simulations: readonly StartedSimulation[]) =>
  simulations.map(({ name, url }) => ({ name, url, models: 'auto' as const, engine: 'auto' }));

/** Asks for the counters until they are as wanted: each answer is an event, nothing sleeps. */
export async function untilStats(
  gateway: StartedGateway,
  isWanted: (stats: Readonly<Record<string, number>>) => boolean,
): Promise<Readonly<Record<string, number>>> {
  for (;;) {
    const stats = await gateway.stats();
    if (isWanted(stats)) return stats;
  }
}

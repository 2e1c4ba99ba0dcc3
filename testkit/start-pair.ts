import { onTestFinished } from 'vitest';
import { type FakeReplica, startFakeReplica } from './fake-replica.ts';
import {
  type ConfiguredReplica,
  type StartedGateway,
  type StartGatewayOptions,
  startGateway,
} from './start-gateway.ts';

/** A replica, and a gateway before it. */
export interface Pair {
  readonly replica: FakeReplica;
  readonly gateway: StartedGateway;
}

/** Starts a replica and a gateway for one test. `keys` are added to what the configuration says of the replica. */
export async function startPair(
  keys: Partial<ConfiguredReplica> = {},
  config: StartGatewayOptions['config'] = {},
): Promise<Pair> {
  const replica = await startFakeReplica();
  onTestFinished(() => replica.close());
  const { name, url } = replica;
  const gateway = await startGateway({ replicas: [{ name, url, ...keys }], config });
  onTestFinished(async () => {
    await gateway.close();
  });
  return { replica, gateway };
}

/** The same, with the endpoints `responses` and `messages`. */
export function startFurtherEndpoints(config: StartGatewayOptions['config'] = {}): Promise<Pair> {
  return startPair({}, { endpoints: ['responses', 'messages'], ...config });
}

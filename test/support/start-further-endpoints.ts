import { onTestFinished } from 'vitest';
import { type FakeReplica, startFakeReplica } from './fake-replica.ts';
import { type StartedGateway, startGateway } from './start-gateway.ts';

/** Starts a replica, and a gateway with `responses` and `messages`, for one test. */
export async function startFurtherEndpoints(
  config: Readonly<Record<string, Readonly<Record<string, unknown>> | readonly string[]>> = {},
): Promise<{ readonly replica: FakeReplica; readonly gateway: StartedGateway }> {
  const replica = await startFakeReplica();
  onTestFinished(() => replica.close());
  const gateway = await startGateway({
    replicas: [replica],
    config: { endpoints: ['responses', 'messages'], ...config },
  });
  onTestFinished(async () => {
    await gateway.close();
  });
  return { replica, gateway };
}

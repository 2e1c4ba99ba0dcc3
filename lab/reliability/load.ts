import { Agent } from 'node:http';
import { createSimulatedReplica } from '#simulate';
import { post } from '#testkit/load/load.ts';
import { sendInClosedLoop } from '#testkit/load/loops.ts';
import { askAdmin } from '#testkit/programs/gateway-process.ts';
import type { SimulatedReplica } from '../../src/simulate/create-replica.ts';
import {
  CONCURRENCY,
  type LoadJob,
  type LoadMessage,
  type LoadResult,
  type Replicas,
  type Side,
} from './load-messages.ts';

/*
 * The second process of the measurement has the replicas and the clients, so that they do not share a process with the
 * collector.
 */

/** Requests to one gateway before the other's turn: few, so that both see the same noise. */
const BLOCK = 40;

const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });
const BODY = { model: 'm', messages: [{ role: 'user', content: 'Tell me about gateways. '.repeat(40) }] };
const BODIES = [false, true].map((stream) => Buffer.from(JSON.stringify({ ...BODY, stream })));

let replicas: Readonly<Record<Side['name'], readonly SimulatedReplica[]>> = { healthy: [], faulty: [] };

process.on('message', async (message: LoadMessage) => {
  process.send?.(message.kind === 'replicas' ? await startReplicas(message.gapMs) : await runLoad(message));
});
process.once('disconnect', () => process.exit());

/** Replaces the replicas of the last fault by new ones, for both sides. */
async function startReplicas(gapMs: number): Promise<Replicas> {
  await Promise.all([...replicas.healthy, ...replicas.faulty].map((replica) => replica.close()));
  const names = ['a', 'b'];
  const create = () =>
    names.map((name) => createSimulatedReplica({ name, models: ['m'], ttftMs: 0, gapMs, tokens: 8 }));
  replicas = { healthy: create(), faulty: create() };
  const start = (side: readonly SimulatedReplica[]) =>
    Promise.all(side.map(async (replica, i) => ({ name: names[i] ?? '', ...(await replica.start()) })));
  return { healthy: await start(replicas.healthy), faulty: await start(replicas.faulty) };
}

async function runLoad({ sides, requests, midway, adminUrl }: LoadJob): Promise<LoadResult> {
  const result = {
    healthy: { latenciesMs: [] as number[], failed: 0 },
    faulty: { latenciesMs: [] as number[], failed: 0 },
  };
  let isMidwayDone = midway === undefined;
  for (let sent = 0; sent < requests; sent += BLOCK) {
    for (const { name, url } of sides) {
      const own = result[name];
      await sendInClosedLoop(CONCURRENCY, Math.min(BLOCK, requests - sent), async (index) => {
        if (name === 'faulty' && !isMidwayDone && sent + index >= requests / 2 + BLOCK / 2) {
          isMidwayDone = true;
          await (midway === 'kill'
            ? replicas.faulty[0]?.close()
            : askAdmin(adminUrl, 'POST', '/admin/replicas/a/drain'));
        }
        const startedAtMs = performance.now();
        // Two by two: round robin then gives streams and whole answers to both replicas.
        const body = BODIES[index % 4 >= 2 ? 1 : 0] ?? '';
        const isWhole = await post(agent, `${url}/v1/chat/completions`, body).then(
          ({ problem }) => problem === null,
          () => false,
        );
        own.latenciesMs.push(performance.now() - startedAtMs);
        if (!isWhole) own.failed += 1;
      });
    }
  }
  return result;
}

import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { createSimulatedReplica, type SimulatedReplica } from '../../src/simulate/create-replica.ts';
import {
  CONCURRENCY,
  type LoadJob,
  type LoadMessage,
  type LoadResult,
  type Replicas,
  type Side,
} from './load-messages.ts';

/**
 * The other process of the measurement: replicas and clients, so that what the gateway's collector does to its
 * own process costs them nothing.
 */

/** Requests to one gateway before it is the other's turn: short, so that both see the same noise. */
const BLOCK = 40;

const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });
const BODY = { model: 'm', messages: [{ role: 'user', content: 'Tell me about gateways. '.repeat(40) }] };
const BODIES = [false, true].map((stream) => Buffer.from(JSON.stringify({ ...BODY, stream })));

let replicas: Readonly<Record<Side['name'], readonly SimulatedReplica[]>> = { healthy: [], faulty: [] };

process.on('message', async (message: LoadMessage) => {
  process.send?.(message.kind === 'replicas' ? await startReplicas(message.gapMs) : await runLoad(message));
});
process.once('disconnect', () => process.exit());

/** Fresh replicas for both sides; those of the last fault go. */
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

async function runLoad({ sides, requests, midway, adminToken }: LoadJob): Promise<LoadResult> {
  const result = {
    healthy: { latenciesMs: [] as number[], failed: 0 },
    faulty: { latenciesMs: [] as number[], failed: 0 },
  };
  let isMidwayDone = midway === undefined;
  for (let sent = 0; sent < requests; sent += BLOCK) {
    for (const side of sides) {
      const one = result[side.name];
      let next = 0;
      const work = async () => {
        while (next < Math.min(BLOCK, requests - sent)) {
          const index = next++;
          if (side.name === 'faulty' && !isMidwayDone && sent + index >= requests / 2 + BLOCK / 2) {
            isMidwayDone = true;
            await (midway === 'kill' ? replicas.faulty[0]?.close() : drain(side, adminToken));
          }
          const startedAtMs = performance.now();
          const isWhole = await send(side, index).catch(() => false);
          one.latenciesMs.push(performance.now() - startedAtMs);
          if (!isWhole) one.failed += 1;
        }
      };
      await Promise.all(Array.from({ length: CONCURRENCY }, work));
    }
  }
  return result;
}

async function drain(side: Side, adminToken: string): Promise<void> {
  const headers = { Authorization: `Bearer ${adminToken}` };
  const response = await fetch(`${side.adminUrl}/admin/replicas/a/drain`, { method: 'POST', headers });
  if (!response.ok) throw new Error(`drain was answered with ${response.status}`);
}

/** Whether the answer has status 200 and came whole. */
async function send(side: Side, index: number): Promise<boolean> {
  // Two by two, so that the replicas' turns give both kinds to each of them.
  const isStream = index % 4 >= 2;
  const outgoing = request(`${side.url}/v1/chat/completions`, {
    method: 'POST',
    agent,
    headers: { 'Content-Type': 'application/json' },
  });
  outgoing.end(BODIES[isStream ? 1 : 0]);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const body = await text(response);
  return response.statusCode === 200 && (isStream ? body.endsWith('data: [DONE]\n\n') : body.endsWith('}'));
}

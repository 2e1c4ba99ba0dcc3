import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestRecord } from '#otel/record/registry';
import { post } from '#testkit/load/load.ts';
import { sendInOpenLoop } from '#testkit/load/loops.ts';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { ADMIN_TOKEN, type GatewayProcess, startGateway } from '#testkit/programs/gateway-process.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { writePast } from './past.ts';
import { DRAINED, EMBED, ENGINES, GPUS, LLAMA, MODELS, PRICES, TENANTS } from './scene.ts';

const PER_SECOND = 8;
const MAX_OPEN = 60;

/** The engine that is silent in the middle of a stream now and then, for so long, in one of so many tokens. */
const SILENT = 'vllm-llama-70b-2';
const SILENCE_MS = 6_000;
const EVERY_TOKENS = 1_500;

/** Waits as an engine does, and now and then much longer. */
function createStumbling() {
  let tokens = 0;
  return async (ms: number, signal: AbortSignal): Promise<void> => {
    tokens += 1;
    await sleep(tokens % EVERY_TOKENS === EVERY_TOKENS / 3 ? SILENCE_MS : ms, undefined, { signal });
  };
}

/** A gateway and its replicas, one of which does not answer. */
export interface Fleet extends AsyncDisposable {
  readonly gateway: GatewayProcess;
  drainOne(): Promise<void>;
  /** The id of a request whose stream was silent, or else of the slowest one. */
  findSlow(): Promise<string>;
}

/** Starts simulated engines, and a gateway before them that remembers a week. */
export async function startFleet(folder: string): Promise<Fleet> {
  const started = new AsyncDisposableStack();
  const replicas: object[] = [];
  for (const { name, model, ...settings } of ENGINES) {
    const given = { tokens: 32, ...settings, models: [model], name, faults: ['status_500' as const] };
    const engine = started.use(
      await startSimulatedReplica(given, name === SILENT ? { sleep: createStumbling() } : {}),
    );
    replicas.push({ name, url: engine.url, models: [model], engine: 'vllm', ...GPUS[model] });
  }
  const url = `http://127.0.0.1:${await findFreePort()}`;
  replicas.push({ name: 'vllm-llama-70b-3', url, models: [LLAMA], engine: 'vllm', ...GPUS[LLAMA] });
  await writePast(`${folder}/state`);
  const gateway = started.use(
    await startGateway(folder, {
      gateway: { name: 'gw-eu-1', listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0', workers: 2 },
      state_dir: `${folder}/state`,
      replicas,
      currency: 'EUR',
      gpu_hour_price: PRICES,
      export: { to: 'file' },
    }),
  );
  return {
    gateway,
    async drainOne() {
      const call = `${gateway.adminUrl}/admin/replicas/${DRAINED}/drain?reason=driver%20update`;
      const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
      const { ok, status } = await fetch(call, { method: 'POST', headers });
      if (!ok) throw new Error(`the drain was answered with ${status}`);
    },
    async findSlow() {
      const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
      const response = await fetch(`${gateway.adminUrl}/admin/records?limit=500`, { headers });
      const { records } = (await response.json()) as { readonly records: readonly RequestRecord[] };
      const slowness = ({ silence_ms = 0, e2e_ms }: RequestRecord) => 1_000 * silence_ms + e2e_ms;
      const [slowest] = records
        .filter(({ status }) => status === 200)
        .toSorted((a, b) => slowness(b) - slowness(a));
      if (slowest === undefined) throw new Error('no request succeeded');
      return slowest.request_id;
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Sends chats and embeddings of several tenants, more and fewer in turn, until the signal is aborted. */
export async function sendTraffic(gatewayUrl: string, signal: AbortSignal): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const open = new Set<Promise<unknown>>();
  let sent = 0;
  await sendInOpenLoop({
    perSecond: 2 * PER_SECOND,
    maxBurst: 2,
    hasRoom: () => open.size < MAX_OPEN,
    begin() {
      // Every second one is left out on average, in waves.
      if (Math.random() > 0.5 + 0.3 * Math.sin(performance.now() / 5_000)) return;
      const sending = sendOne(agent, gatewayUrl, sent++).finally(() => open.delete(sending));
      open.add(sending);
    },
    isStopped: () => signal.aborted,
  });
  await Promise.all(open);
  agent.destroy();
}

async function sendOne(agent: Agent, gatewayUrl: string, index: number): Promise<void> {
  const model = index % 100 === 37 ? 'meta-llama/Llama-3.1-8B' : (MODELS[index % MODELS.length] ?? LLAMA);
  const fields = { 'X-Tenant': TENANTS[Math.floor(Math.random() * TENANTS.length)] ?? 'acme' };
  const text = 'Tell me how a rollout goes. '.repeat(1 + (index % 40));
  const [path, body] =
    model === EMBED
      ? ['/v1/embeddings', { model, input: text }]
      : [
          '/v1/chat/completions',
          { model, messages: [{ role: 'user', content: text }], stream: index % 3 > 0 },
        ];
  // What fails is part of the picture.
  await post(agent, gatewayUrl + path, JSON.stringify(body), fields).catch(() => undefined);
}

import { Agent } from 'node:http';
import { post } from '#testkit/load/load.ts';
import { sendInOpenLoop } from '#testkit/load/loops.ts';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { ADMIN_TOKEN, type GatewayProcess, startGateway } from '#testkit/programs/gateway-process.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';

const LLAMA = 'meta-llama/Llama-3.3-70B-Instruct-FP8';
const QWEN = 'Qwen/Qwen3-32B';
const EMBED = 'BAAI/bge-m3';

/** The replica that is drained before the pictures are taken. */
const DRAINED = 'vllm-llama-70b-1';

const GPUS = {
  [LLAMA]: { gpu_model: 'H100', gpu_count: 4 },
  [QWEN]: { gpu_model: 'H100', gpu_count: 2 },
  [EMBED]: { gpu_model: 'L4', gpu_count: 1 },
} as const;

/** The engines that answer. Times are in milliseconds. */
const ENGINES = [
  { name: 'vllm-llama-70b-0', model: LLAMA, ttftMs: 180, gapMs: 40 },
  { name: DRAINED, model: LLAMA, ttftMs: 180, gapMs: 40 },
  { name: 'vllm-llama-70b-2', model: LLAMA, ttftMs: 200, gapMs: 42 },
  { name: 'vllm-qwen-32b-0', model: QWEN, ttftMs: 130, gapMs: 25 },
  { name: 'vllm-qwen-32b-1', model: QWEN, ttftMs: 130, gapMs: 25, errorRate: 0.12 },
  { name: 'bge-m3-0', model: EMBED, ttftMs: 50, gapMs: 0 },
  { name: 'bge-m3-1', model: EMBED, ttftMs: 50, gapMs: 0 },
] as const;

/** Of ten requests, so many are for each model; one in a hundred is for a model that nobody serves. */
const MODELS = [LLAMA, QWEN, EMBED, LLAMA, QWEN, LLAMA, EMBED, LLAMA, QWEN, LLAMA] as const;
const TENANTS = ['acme', 'acme', 'acme', 'initech', 'initech', 'globex'] as const;

const PER_SECOND = 8;
const MAX_OPEN = 60;

/** A gateway and its replicas, one of which does not answer. */
export interface Fleet extends AsyncDisposable {
  readonly gateway: GatewayProcess;
  drainOne(): Promise<void>;
}

/** Starts simulated engines, and a gateway before them. */
export async function startFleet(folder: string): Promise<Fleet> {
  const started = new AsyncDisposableStack();
  const replicas: object[] = [];
  for (const { name, model, ...settings } of ENGINES) {
    const engine = started.use(
      await startSimulatedReplica({ tokens: 32, ...settings, models: [model], name, faults: ['status_500'] }),
    );
    replicas.push({ name, url: engine.url, models: [model], engine: 'vllm', ...GPUS[model] });
  }
  const url = `http://127.0.0.1:${await findFreePort()}`;
  replicas.push({ name: 'vllm-llama-70b-3', url, models: [LLAMA], engine: 'vllm', ...GPUS[LLAMA] });
  const gateway = started.use(
    await startGateway(folder, {
      gateway: { name: 'gw-eu-1', listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0', workers: 2 },
      state_dir: `${folder}/state`,
      replicas,
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

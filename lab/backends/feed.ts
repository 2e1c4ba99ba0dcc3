import { join } from 'node:path';
import type { RequestRecord } from '#otel/record/registry';
import { createSimulatedReplica } from '#simulate';
import { askAdmin, startGateway } from '#testkit/programs/gateway-process.ts';

/** What the requests have, so that a backend can be asked for it. */
export const SENT = {
  model: 'llama-3.3-70b',
  user: 'u-4711',
  session: 's-42',
  agent: 'support-bot',
  prompt: 'support-answer',
  temperature: 0.7,
  seed: 7,
} as const;

/** In every prompt, and so in no backend. */
export const CANARY = 'heliotrope';

const MAX_TOKENS = 48;
const PORT = 8000;
/** Nothing listens there. */
const DOWN_URLS = ['http://127.0.0.1:8001', 'http://127.0.0.1:8002'] as const;
const GATEWAY = '127.0.0.1:8080';
/** Host and port of the admin listener, which Prometheus scrapes. */
export const ADMIN = '127.0.0.1:9090';

/** The records of what was sent. */
export interface Fed {
  readonly chat: RequestRecord;
  readonly stream: RequestRecord;
  readonly completion: RequestRecord;
  readonly embedding: RequestRecord;
  /** No replica of its model answers. */
  readonly failed: RequestRecord;
  readonly all: readonly RequestRecord[];
}

/** How records leave the gateway: sections of its configuration, and its environment. */
export interface Way {
  readonly config: object;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a gateway with a replica that is up and two that are down, and sends requests of each kind through it. */
export async function startFeeding(
  folder: string,
  { config, env }: Way,
): Promise<AsyncDisposable & { readonly fed: Fed }> {
  await using cleanUp = new AsyncDisposableStack();
  const replica = createSimulatedReplica({ port: PORT, models: [SENT.model], ttftMs: 180, gapMs: 15 });
  await replica.start();
  cleanUp.defer(() => replica.close());
  const gateway = cleanUp.use(await startGateway(folder, { ...toConfig(folder), ...config }, env));
  const sent = {
    chat: await send('/v1/chat/completions', { ...CHAT, max_tokens: MAX_TOKENS }),
    stream: await send('/v1/chat/completions', {
      ...CHAT,
      stream: true,
      stream_options: { include_usage: true },
    }),
    completion: await send('/v1/completions', {
      model: SENT.model,
      prompt: `Once upon a ${CANARY}`,
      max_tokens: 8,
    }),
    embedding: await send('/v1/embeddings', { model: SENT.model, input: `Once upon a ${CANARY}` }),
    failed: await send('/v1/chat/completions', { ...CHAT, model: 'down' }),
  };
  await gateway.untilDelivered();
  const find = (id: string) => findRecord(gateway.adminUrl, id);
  const fed = {
    chat: await find(sent.chat),
    stream: await find(sent.stream),
    completion: await find(sent.completion),
    embedding: await find(sent.embedding),
    failed: await find(sent.failed),
  };
  const running = cleanUp.move();
  return {
    fed: { ...fed, all: Object.values(fed) },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

const CHAT = {
  model: SENT.model,
  messages: [
    { role: 'user', content: `The gateway relays the ${CANARY} to one of its replicas. `.repeat(15).trim() },
  ],
  temperature: SENT.temperature,
  seed: SENT.seed,
} as const;

function toConfig(folder: string): object {
  const gpus = { engine: 'vllm', gpu_count: 8, gpu_hour_price: 2.49 };
  return {
    gateway: { listen: GATEWAY, admin_listen: ADMIN },
    state_dir: join(folder, 'state'),
    headers: {
      user: 'X-User',
      session: 'X-Session',
      agent: 'X-Agent',
      prompt: 'X-Prompt-Name',
      prompt_version: 'X-Prompt-Version',
    },
    trace: { spans: 'attempts' },
    replicas: [
      { name: 'vllm-a', url: `http://127.0.0.1:${PORT}`, models: [SENT.model], ...gpus },
      { name: 'vllm-b', url: DOWN_URLS[0], models: [SENT.model], ...gpus },
      { name: 'vllm-c', url: DOWN_URLS[1], models: ['down'], ...gpus },
    ],
  };
}

/** Sends a request, reads its answer, and resolves with its id. */
async function send(path: string, body: object): Promise<string> {
  const response = await fetch(`http://${GATEWAY}${path}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-Tenant': 'acme',
      'X-Feature': 'assistant',
      'X-User': SENT.user,
      'X-Session': SENT.session,
      'X-Agent': SENT.agent,
      'X-Prompt-Name': SENT.prompt,
      'X-Prompt-Version': '12',
    },
    body: JSON.stringify(body),
  });
  await response.text();
  const id = response.headers.get('x-request-id');
  if (id === null) throw new Error(`${path} was answered with ${response.status} and without an id`);
  return id;
}

async function findRecord(adminUrl: string, id: string): Promise<RequestRecord> {
  const { records } = (await askAdmin(adminUrl, 'GET', `/admin/records/${id}`)) as {
    readonly records: readonly RequestRecord[];
  };
  const [record] = records;
  if (record === undefined) throw new Error(`the gateway has no record of ${id}`);
  return record;
}

/** The sum of a field over records; those without it count as 0. */
export function sumOf(
  records: readonly RequestRecord[],
  field: 'prompt_tokens' | 'completion_tokens' | 'cost' | 'e2e_ms',
): number {
  return records.reduce((sum, record) => sum + (record[field] ?? 0), 0);
}

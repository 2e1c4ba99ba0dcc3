import { createHash } from 'node:crypto';
import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { startRedisServer } from '#testkit/servers/redis-server.ts';

const { seconds, warmup } = startProgram(
  'npm run lab -- measure/fleet-limits [--warmup SECONDS] [--seconds SECONDS]\n  What two gateways that share a Redis server admit of the limits of clients and tenants.',
  { seconds: { type: 'string', default: '120' }, warmup: { type: 'string', default: '70' } },
);

const LIMITS = { requests: 600, tokens: 60_000, inflight: 100 };
/** What a request of the replica takes and uses. */
const ANSWER_MS = 300;
const TOKENS = 100;
const ANSWER = JSON.stringify({
  choices: [],
  usage: { prompt_tokens: TOKENS / 2, completion_tokens: TOKENS / 2, total_tokens: TOKENS },
});
const BODY = JSON.stringify({ model: 'm', messages: [], max_tokens: TOKENS });

await using cleanUp = new AsyncDisposableStack();
const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-limits-')));
const redis = cleanUp.use(await startRedisServer());

type Kind = keyof typeof LIMITS;
/** Each has one limit: of its own, or of its tenant. A tenant has two clients, one at each gateway. */
type Client = Kind | `tenant-${Kind}`;
const KINDS = Object.keys(LIMITS) as Kind[];
const CLIENTS: readonly Client[] = [...KINDS, ...KINDS.map((kind) => `tenant-${kind}` as const)];
const zeros = () => Object.fromEntries(CLIENTS.map((client) => [client, 0])) as Record<Client, number>;
/** Requests at the replica by the name of their client. */
const running = zeros();
const finished = zeros();
const replica = createServer((incoming, response) => {
  const client = incoming.headers['x-feature'] as Client | undefined;
  incoming.resume();
  if (client === undefined) {
    response.end('{"object":"list","data":[{"id":"m"}]}');
    return;
  }
  running[client] += 1;
  const answer = () => {
    running[client] -= 1;
    finished[client] += 1;
    response.setHeader('Content-Type', 'application/json').end(ANSWER);
  };
  if (client.endsWith('inflight')) setTimeout(answer, ANSWER_MS);
  else answer();
}).listen(0, '127.0.0.1');
cleanUp.defer(() => void replica.closeAllConnections());
cleanUp.defer(() => void replica.close());

const keyOf = (client: Client, gateway: number) => `key-of-${client}${client.includes('-') ? gateway : ''}`;
const LIMIT_OF = {
  requests: { requests_per_minute: LIMITS.requests },
  tokens: { tokens_per_minute: LIMITS.tokens },
  inflight: { max_inflight: LIMITS.inflight },
} as const;
const clientOf = (client: Client, gateway: number, more: object) => {
  const key = keyOf(client, gateway);
  return {
    name: key.slice('key-of-'.length),
    key_sha256: createHash('sha256').update(key).digest('hex'),
    ...more,
  };
};
const start = async (name: string) => {
  await mkdir(join(folder.path, name));
  const { url } = await redis.openLink();
  return await startGateway(join(folder.path, name), {
    gateway: { name, listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    state: { redis: url },
    export: { to: 'file' },
    replicas: [
      { name: 'a', url: `http://127.0.0.1:${(replica.address() as AddressInfo).port}`, models: ['m'] },
    ],
    clients: [
      ...KINDS.map((kind) => clientOf(kind, 0, LIMIT_OF[kind])),
      ...KINDS.flatMap((kind) =>
        [0, 1].map((gateway) => clientOf(`tenant-${kind}`, gateway, { tenant: `tenant-${kind}` })),
      ),
    ],
    tenant_limits: Object.fromEntries(KINDS.map((kind) => [`tenant-${kind}`, LIMIT_OF[kind]])),
  });
};
const gateways = await Promise.all([start('gateway-1'), start('gateway-2')]);
for (const gateway of gateways) cleanUp.use(gateway);

const dispatcher = new Agent({ connections: 800 });
cleanUp.defer(() => dispatcher.destroy());
const over = new AbortController();

/** Sends requests of one client one after another, with a pause after each. */
async function send(gateway: number, client: Client, pauseMs: number): Promise<void> {
  const url = gateways[gateway]?.url;
  while (!over.signal.aborted) {
    const headers = { Authorization: `Bearer ${keyOf(client, gateway)}`, 'X-Feature': client };
    const { body } = await request(`${url}/v1/chat/completions`, {
      method: 'POST',
      body: BODY,
      headers,
      dispatcher,
    });
    await body.dump();
    await sleep(pauseMs);
  }
}

const loads = [0, 1].flatMap((gateway) =>
  CLIENTS.flatMap((client) => {
    const [length, pauseMs] = client.endsWith('inflight') ? [120, 500] : [10, 200];
    return Array.from({ length }, () => send(gateway, client, pauseMs));
  }),
);
// What is left of the first budgets is used before the measurement.
await sleep(toCount(warmup) * 1000);
const before = { ...finished };
const samples: Record<'inflight' | 'tenant-inflight', number[]> = { inflight: [], 'tenant-inflight': [] };
const sampling = setInterval(() => {
  for (const client of ['inflight', 'tenant-inflight'] as const) samples[client].push(running[client]);
}, 20);
const startedAtMs = performance.now();
await sleep(toCount(seconds) * 1000);
const minutes = (performance.now() - startedAtMs) / 60_000;
clearInterval(sampling);
over.abort();
await Promise.all(loads);

const perMinute = (client: Client) => (finished[client] - before[client]) / minutes;
const mean = (all: readonly number[]) => Math.round(all.reduce((sum, each) => sum + each, 0) / all.length);
console.log(`two gateways, ${toCount(seconds)} s after ${toCount(warmup)} s of load`);
for (const [whose, prefix] of [
  ['client', ''],
  ['tenant', 'tenant-'],
] as const) {
  const inFlight = samples[`${prefix}inflight`];
  console.log(`of a ${whose}:
  requests per minute   limit ${LIMITS.requests}    passed ${Math.round(perMinute(`${prefix}requests`))}
  tokens per minute     limit ${LIMITS.tokens}  passed ${Math.round(perMinute(`${prefix}tokens`) * TOKENS)}
  in flight             limit ${LIMITS.inflight}    most ${Math.max(...inFlight)}, mean ${mean(inFlight)}`);
}

import { createHash } from 'node:crypto';
import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { startRedisServer } from '../../test/support/servers/redis-server.ts';
import { startGateway } from '../support/gateway-process.ts';
import { startProgram, toCount } from '../support/program.ts';

const { seconds, warmup } = startProgram(
  'npm run lab -- measure/fleet-limits [--warmup SECONDS] [--seconds SECONDS]\n  What two gateways that share a Redis server admit of the limits of clients.',
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

/** Requests at the replica by the name of their client. */
const running = { requests: 0, tokens: 0, inflight: 0 };
const finished = { requests: 0, tokens: 0, inflight: 0 };
type Client = keyof typeof running;
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
  if (client === 'inflight') setTimeout(answer, ANSWER_MS);
  else answer();
}).listen(0, '127.0.0.1');
cleanUp.defer(() => void replica.closeAllConnections());
cleanUp.defer(() => void replica.close());

const keyOf = (client: Client) => `key-of-${client}`;
const clientOf = (name: Client, limit: object) => ({
  ...{ name, key_sha256: createHash('sha256').update(keyOf(name)).digest('hex') },
  ...limit,
});
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
      clientOf('requests', { requests_per_minute: LIMITS.requests }),
      clientOf('tokens', { tokens_per_minute: LIMITS.tokens }),
      clientOf('inflight', { max_inflight: LIMITS.inflight }),
    ],
  });
};
const gateways = await Promise.all([start('gateway-1'), start('gateway-2')]);
for (const gateway of gateways) cleanUp.use(gateway);

const dispatcher = new Agent({ connections: 400 });
cleanUp.defer(() => dispatcher.destroy());
const over = new AbortController();

/** Sends requests of one client one after another, with a pause after each. */
async function send(url: string, client: Client, pauseMs: number): Promise<void> {
  while (!over.signal.aborted) {
    const headers = { Authorization: `Bearer ${keyOf(client)}`, 'X-Feature': client };
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

const loads = gateways.flatMap(({ url }) => [
  ...Array.from({ length: 10 }, () => send(url, 'requests', 200)),
  ...Array.from({ length: 10 }, () => send(url, 'tokens', 200)),
  ...Array.from({ length: 120 }, () => send(url, 'inflight', 500)),
]);
// What is left of the first budgets is used before the measurement.
await sleep(toCount(warmup) * 1000);
const before = { ...finished };
const samples: number[] = [];
const sampling = setInterval(() => samples.push(running.inflight), 20);
const startedAtMs = performance.now();
await sleep(toCount(seconds) * 1000);
const minutes = (performance.now() - startedAtMs) / 60_000;
clearInterval(sampling);
over.abort();
await Promise.all(loads);

const perMinute = (client: Client) => (finished[client] - before[client]) / minutes;
const mean = samples.reduce((sum, each) => sum + each, 0) / samples.length;
console.log(`two gateways, ${toCount(seconds)} s after ${toCount(warmup)} s of load
  requests per minute   limit ${LIMITS.requests}    passed ${Math.round(perMinute('requests'))}
  tokens per minute     limit ${LIMITS.tokens}  passed ${Math.round(perMinute('tokens') * TOKENS)}
  in flight             limit ${LIMITS.inflight}    most ${Math.max(...samples)}, mean ${Math.round(mean)}`);

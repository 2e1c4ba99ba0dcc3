import { mkdtempDisposable } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sendInOpenLoop } from '#testkit/load/loops.ts';
import { askAdmin, startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { median, percentile } from '#testkit/programs/statistics.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';

const { rate, rounds, seconds } = startProgram(
  `npm run lab -- measure/shadow [--rate N] [--rounds N] [--seconds N]
  What clients wait with and without a shadow that gets a copy of 10 % of the requests: the same gateway, in turn.
  --rate     requests per second (default 300)
  --rounds   rounds, of a time without and a time with copies each (default 30)
  --seconds  of each such time (default 10)`,
  {
    rate: { type: 'string', default: '300' },
    rounds: { type: 'string', default: '30' },
    seconds: { type: 'string', default: '10' },
  },
);

const SHARE = '10%';
const BODY = JSON.stringify({
  model: 'm',
  stream: true,
  temperature: 0,
  max_tokens: 8,
  messages: [{ role: 'user', content: 'What is the capital of France? '.repeat(20) }],
});

await using cleanUp = new AsyncDisposableStack();
const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-shadow-'))).path;
const replicas = [];
for (const name of ['a', 'b', 'c', 's']) {
  const { url } = cleanUp.use(await startSimulatedReplica({ ttftMs: 10, gapMs: 2 }));
  replicas.push({ name, url, models: ['m'], engine: 'vllm' });
}
const gateway = cleanUp.use(
  await startGateway(folder, {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    state_dir: join(folder, 'state'),
    export: { to: 'file' },
    shadow: { max_inflight: 64 },
    replicas,
  }),
);
// It serves nobody in either half: only the copies are the difference.
await admin('drain');
const agent = new Agent({ keepAlive: true });
await measure(5);

const differences = { p50: [] as number[], p99: [] as number[] };
const all = { without: [] as number[], with: [] as number[] };
for (let round = 0; round < toCount(rounds); round++) {
  const without = await measure(toCount(seconds));
  await admin(`shadow?requests=${encodeURIComponent(SHARE)}`);
  const withCopies = await measure(toCount(seconds));
  await admin('unshadow');
  all.without.push(...without);
  all.with.push(...withCopies);
  differences.p50.push(percentile(withCopies, 0.5) - percentile(without, 0.5));
  differences.p99.push(percentile(withCopies, 0.99) - percentile(without, 0.99));
}
const ms = (value: number) => value.toFixed(2);
console.log(
  `${all.without.length + all.with.length} requests, ${rate} per second, ${SHARE} copied in every second half`,
);
for (const [name, share] of [
  ['p50', 0.5],
  ['p99', 0.99],
] as const) {
  const spread = [0.25, 0.75].map((each) => ms(percentile(differences[name], each))).join(' to ');
  console.log(
    `first byte, ${name}: ${ms(percentile(all.without, share))} ms without, ${ms(percentile(all.with, share))} ms with; ` +
      `of the rounds: ${ms(median(differences[name]))} ms more (half of them ${spread})`,
  );
}

/** Sends requests for so long. Returns how long each waited for its first byte, in milliseconds. */
async function measure(forSeconds: number): Promise<readonly number[]> {
  const waits: number[] = [];
  const open = new Set<Promise<void>>();
  const untilMs = performance.now() + forSeconds * 1_000;
  await sendInOpenLoop({
    perSecond: toCount(rate),
    maxBurst: 10,
    hasRoom: () => open.size < 300,
    isStopped: () => performance.now() >= untilMs,
    begin() {
      const sent = send(waits).finally(() => open.delete(sent));
      open.add(sent);
    },
  });
  await Promise.all(open);
  return waits;
}

function send(waits: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const beganMs = performance.now();
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(BODY) };
    const outgoing = request(`${gateway.url}/v1/chat/completions`, { method: 'POST', agent, headers });
    outgoing.once('response', (answer) => {
      answer.once('data', () => waits.push(performance.now() - beganMs));
      answer.resume().once('end', resolve).once('error', reject);
    });
    outgoing.once('error', reject).end(BODY);
  });
}

async function admin(call: string): Promise<void> {
  await askAdmin(gateway.adminUrl, 'POST', `/admin/replicas/s/${call}`);
}

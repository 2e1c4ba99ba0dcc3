import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild, waitForPort } from './child.ts';
import { readCpu, toSpentUs } from './process-tree.ts';
import { gatewayTargets } from './targets/gateway.ts';
import { nodePipe } from './targets/node-proxies.ts';
import type { Target } from './targets/target.ts';
import { findFreePort } from './workspace.ts';

/**
 * Fails when a request costs the gateway much more CPU than it did: `node lab/bench/guard.ts`. A machine's speed says
 * nothing about that, so it is told in requests of a pass-through by pipe, measured in turns with the gateway. Load
 * and replica are this process, whose CPU does not count: no compiler is needed.
 */

/** What the gateway may cost, in pass-throughs. It was 1.3 when this was written: tighten it as that falls. */
const MAX_RATIO = 1.8;

const ROUNDS = 5;
const WARM_REQUESTS = 2000;
const REQUESTS = 800;
const CLIENTS = 8;
const BODY = JSON.stringify({
  model: 'm',
  max_tokens: 40,
  messages: [{ role: 'user', content: 'lorem ipsum '.repeat(166) }],
});
const ANSWER = JSON.stringify({
  object: 'chat.completion',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'hello '.repeat(40) }, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 500, completion_tokens: 40, total_tokens: 540 },
});

if (process.platform === 'linux') await guard();
else console.log('CPU guard: skipped, only Linux tells the CPU time of other processes');

async function guard(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'spangate-guard-'));
  const replica = createServer((incoming, outgoing) => {
    incoming.resume().once('end', () => {
      outgoing
        .setHeader('content-type', 'application/json')
        .end(incoming.url === '/v1/traces' ? '{}' : ANSWER);
    });
  });
  const replicaPort = await findFreePort();
  await new Promise<void>((resolve) => replica.listen(replicaPort, '127.0.0.1', resolve));
  try {
    const [gateway] = gatewayTargets;
    if (gateway === undefined) throw new Error('there is no gateway to measure');
    await using measured = await start(gateway, replicaPort, folder);
    await using reference = await start(nodePipe, replicaPort, folder);
    const ratio = await compare(measured, reference);
    const verdict = ratio <= MAX_RATIO ? 'within' : 'ABOVE';
    console.log(
      `CPU guard: a request costs the gateway ${ratio.toFixed(2)} × a pass-through, ${verdict} ${MAX_RATIO}`,
    );
    process.exitCode = ratio <= MAX_RATIO ? 0 : 1;
  } finally {
    replica.close();
    replica.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Server extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
}

async function start(target: Target, replicaPort: number, folder: string): Promise<Server> {
  const port = await findFreePort();
  const surroundings = {
    port,
    replicaPorts: [replicaPort],
    collectorPort: replicaPort,
    folder,
    baseline: null,
  };
  const command = target.prepare({ ...surroundings, closedPort: replicaPort, sparePort: 0, nodeFlags: [] });
  const child = startChild(command, join(folder, `${target.name}.log`));
  await waitForPort(child, port, 60_000);
  return { pid: child.pid, port, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

/** The CPU of all rounds of one by that of the other: the rounds take turns, so that both see the same machine. */
async function compare(measured: Server, reference: Server): Promise<number> {
  const spentUs = { measured: 0, reference: 0 };
  await load(measured, WARM_REQUESTS);
  await load(reference, WARM_REQUESTS);
  for (let round = 0; round < ROUNDS; round++) {
    spentUs.measured += await load(measured, REQUESTS);
    spentUs.reference += await load(reference, REQUESTS);
  }
  const toPrinted = (us: number) => `${(us / ROUNDS / REQUESTS).toFixed(0)} µs`;
  console.log(
    `CPU a request: gateway ${toPrinted(spentUs.measured)}, pass-through ${toPrinted(spentUs.reference)}`,
  );
  return spentUs.measured / spentUs.reference;
}

/** Sends so many requests, and tells the CPU time in µs that the server spent meanwhile. */
async function load({ pid, port }: Server, requestCount: number): Promise<number> {
  const before = readCpu(pid);
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  let left = requestCount;
  const runClient = async () => {
    while (left-- > 0) await sendOne(port, agent);
  };
  await Promise.all(Array.from({ length: CLIENTS }, runClient));
  agent.destroy();
  return toSpentUs(before, readCpu(pid));
}

function sendOne(port: number, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'x-tenant': 'acme' };
    const path = '/v1/chat/completions';
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', headers, agent }, (response) => {
      if (response.statusCode === 200) response.resume().once('end', resolve).once('error', reject);
      else reject(new Error(`the answer was ${response.statusCode}`));
    });
    sent.once('error', reject).end(BODY);
  });
}

import { mkdtempDisposable } from 'node:fs/promises';
import { Agent, createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '../../test/support/processes/free-port.ts';
import { gatewayTargets } from '../bench/targets/gateway.ts';
import { nodePipe } from '../bench/targets/node-proxies.ts';
import type { Target } from '../bench/targets/target.ts';
import { startChild, untilListening } from '../support/child.ts';
import { post, sendInClosedLoop } from '../support/load.ts';
import { PLAIN_ANSWER, PLAIN_BODY } from '../support/plain-exchange.ts';
import { readCpu, toSpentUs } from '../support/process-tree.ts';
import { startProgram } from '../support/program.ts';

const USAGE = `npm run guard
  Measures the CPU time of a request through the gateway in units of that of a pass-through with pipes, measured in
  turn, so that the speed of the machine does not matter. Exits with 1 above the bound. Needs no compiler. Linux only.`;

/** The bound, in pass-throughs. Measured: 1.0 to 1.3, by how V8 happens to compile in a process. */
const MAX_RATIO = 1.4;

const ROUNDS = 5;
/** V8 goes on compiling the gateway's hot code for tens of thousands of requests: after 15,000 it takes half as much again. */
const WARM_REQUESTS = 40_000;
const REQUESTS = 4000;
const CLIENTS = 32;

startProgram(USAGE, {});
if (process.platform === 'linux') await guard();
else console.log('CPU guard: skipped, only Linux reports the CPU time of other processes');

async function guard(): Promise<void> {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'spangate-guard-'));
  const folder = temporary.path;
  const replica = createServer((incoming, outgoing) => {
    incoming.resume().once('end', () => {
      outgoing
        .setHeader('content-type', 'application/json')
        .end(incoming.url === '/v1/traces' ? '{}' : PLAIN_ANSWER);
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
  }
}

interface MeasuredServer extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
}

async function start(target: Target, replicaPort: number, folder: string): Promise<MeasuredServer> {
  const port = await findFreePort();
  const surroundings = {
    port,
    replicaPorts: [replicaPort],
    collectorPort: replicaPort,
    folder,
    baseline: null,
  };
  const command = target.prepare({ ...surroundings, closedPort: replicaPort, sparePort: 0, nodeFlags: [] });
  const child = startChild(command, { logPath: join(folder, `${target.name}.log`) });
  await untilListening(child, port, 60_000);
  return { pid: child.pid, port, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

/** The ratio of the CPU times of all rounds. The rounds alternate, so that both see the same machine. */
async function compare(measured: MeasuredServer, reference: MeasuredServer): Promise<number> {
  const spentUs = { measured: 0, reference: 0 };
  await load(measured, WARM_REQUESTS);
  await load(reference, WARM_REQUESTS);
  for (let round = 0; round < ROUNDS; round++) {
    spentUs.measured += await load(measured, REQUESTS);
    spentUs.reference += await load(reference, REQUESTS);
  }
  const toPrinted = (us: number) => `${(us / ROUNDS / REQUESTS).toFixed(0)} µs`;
  console.log(
    `CPU per request: gateway ${toPrinted(spentUs.measured)}, pass-through ${toPrinted(spentUs.reference)}`,
  );
  return spentUs.measured / spentUs.reference;
}

/** Sends requests and returns the CPU time in µs that the server spent on them. */
async function load({ pid, port }: MeasuredServer, requestCount: number): Promise<number> {
  const before = readCpu(pid);
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  await sendInClosedLoop(CLIENTS, requestCount, async () => {
    const url = `http://127.0.0.1:${port}/v1/chat/completions`;
    const { problem } = await post(agent, url, PLAIN_BODY, { 'X-Tenant': 'acme' });
    if (problem !== null) throw new Error(`a request failed: ${problem}`);
  });
  agent.destroy();
  return toSpentUs(before, readCpu(pid));
}

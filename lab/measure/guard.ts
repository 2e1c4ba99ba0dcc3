import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spendOnChats, WARM_REQUESTS } from '#testkit/load/cpu-of-chats.ts';
import { startPlainReplica } from '#testkit/load/plain-replica.ts';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { startChild, untilListening } from '#testkit/programs/child.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { gatewayTargets } from '../bench/targets/gateway.ts';
import { nodePipe } from '../bench/targets/node-proxies.ts';
import type { Target } from '../bench/targets/target.ts';

const USAGE = `npm run guard
  Measures the CPU time of a request through the gateway in units of that of a pass-through with pipes, measured in
  turn, so that the speed of the machine does not matter. Exits with 1 above the bound. Needs no compiler. Linux only.`;

/** The bound, in pass-throughs. Measured: 1.0 to 1.3, by how V8 happens to compile in a process. */
const MAX_RATIO = 1.4;

const ROUNDS = 5;
const REQUESTS = 4000;

startProgram(USAGE, {});
if (process.platform === 'linux') await guard();
else console.log('CPU guard: skipped, only Linux reports the CPU time of other processes');

async function guard(): Promise<void> {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'spangate-guard-'));
  const folder = temporary.path;
  await using replica = await startPlainReplica();
  const [gateway] = gatewayTargets;
  if (gateway === undefined) throw new Error('there is no gateway to measure');
  await using measured = await start(gateway, replica.port, folder);
  await using reference = await start(nodePipe, replica.port, folder);
  const ratio = await compare(measured, reference);
  const verdict = ratio <= MAX_RATIO ? 'within' : 'ABOVE';
  console.log(
    `CPU guard: a request costs the gateway ${ratio.toFixed(2)} × a pass-through, ${verdict} ${MAX_RATIO}`,
  );
  process.exitCode = ratio <= MAX_RATIO ? 0 : 1;
}

interface MeasuredServer extends AsyncDisposable {
  readonly pid: number;
  readonly url: string;
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
  return {
    pid: child.pid,
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

/** The ratio of the CPU times of all rounds. The rounds alternate, so that both see the same machine. */
async function compare(measured: MeasuredServer, reference: MeasuredServer): Promise<number> {
  const spentUs = { measured: 0, reference: 0 };
  await spendOnChats(measured, WARM_REQUESTS);
  await spendOnChats(reference, WARM_REQUESTS);
  for (let round = 0; round < ROUNDS; round++) {
    spentUs.measured += await spendOnChats(measured, REQUESTS);
    spentUs.reference += await spendOnChats(reference, REQUESTS);
  }
  const toPrinted = (us: number) => `${(us / ROUNDS / REQUESTS).toFixed(0)} µs`;
  console.log(
    `CPU per request: gateway ${toPrinted(spentUs.measured)}, pass-through ${toPrinted(spentUs.reference)}`,
  );
  return spentUs.measured / spentUs.reference;
}

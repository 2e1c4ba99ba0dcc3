import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exchangeRaw, RawConnection } from '../../test/support/raw-http.ts';
import { type Child, startChild } from '../support/child.ts';
import { type Attack, CHAT } from './attack.ts';
import { type RawReplica, startRawReplica } from './raw-replica.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
/** On SIGUSR2 it prints the longest turn of the event loop since the last time. */
const WATCH_LOOP = `
const delays = process.getBuiltinModule('perf_hooks').monitorEventLoopDelay({ resolution: 1 });
delays.enable();
process.on('SIGUSR2', () => {
  process.stdout.write(JSON.stringify({ msg: 'stall', ms: delays.max / 1e6 }) + '\\n');
  delays.reset();
});`;

/** What came of an attack. */
export interface Outcome {
  readonly statuses: readonly number[];
  /** Whether the last answer was whole; false if there was none. */
  readonly isComplete: boolean;
  /** Whether the gateway closed the connection without another byte; true if the attack did not wait for it. */
  readonly hasClosed: boolean;
  /** The request lines that the replica saw. */
  readonly seen: readonly string[];
  /** The status of a sound request on a fresh connection afterwards. */
  readonly nextStatus: number;
  /** How much the resident memory of the gateway grew at its peak, against that before the attack. */
  readonly grownBytes: number;
  readonly longestTurnMs: number;
}

/** A gateway in a process of its own, in front of a replica that does what an attack says. */
export interface AttackedGateway extends AsyncDisposable {
  run(attack: Attack): Promise<Outcome>;
}

/** Starts it, with short time-outs. */
export async function startAttackedGateway(): Promise<AttackedGateway> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'spangate-attacks-')));
  const replica = stack.use(await startRawReplica());
  const path = join(folder.path, 'gateway.yaml');
  await writeFile(path, JSON.stringify(toConfig(replica.url)));
  const preload = `data:text/javascript,${encodeURIComponent(WATCH_LOOP)}`;
  const gateway = stack.use(
    startChild(
      { file: process.execPath, args: ['--import', preload, MAIN, '-config', path], isIsolated: true },
      { stdout: 'lines' },
    ),
  );
  const serving = JSON.parse(await gateway.untilLine((line) => line.includes('"msg":"serving"')));
  const url = `http://${serving.listen}`;
  await exchangeRaw(url, CHAT);
  const started = stack.move();
  return {
    run: (attack) => run(attack, url, replica, gateway),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

async function run(attack: Attack, url: string, replica: RawReplica, gateway: Child): Promise<Outcome> {
  await takeLongestTurn(gateway);
  const before = await resetPeak(gateway.pid);
  replica.seen.length = 0;
  replica.actOnce(attack.replica);
  using client = await RawConnection.open(url);
  if (attack.act === undefined) client.write(attack.bytes ?? CHAT);
  else await attack.act(client, replica);
  const statuses: number[] = [];
  let isComplete = true;
  for (let count = 0; count < attack.statuses.length; count++) {
    const response = await client.readResponse();
    statuses.push(response.status);
    isComplete = response.isComplete && response.status !== 0;
  }
  const hasClosed = attack.closes === false || (await client.readToClose()).length === 0;
  replica.actOnce(undefined);
  const seen = [...replica.seen];
  const next = await exchangeRaw(url, CHAT);
  // The replica has seen this one, and nothing in between.
  const later = replica.seen.slice(seen.length, -1);
  return {
    ...{ statuses, isComplete, hasClosed, seen: [...seen, ...later], nextStatus: next.status },
    grownBytes: (await readPeak(gateway.pid)) - before,
    longestTurnMs: await takeLongestTurn(gateway),
  };
}

function toConfig(replicaUrl: string): object {
  return {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    replicas: [{ name: 'a', url: replicaUrl, models: ['m'], engine: 'openai' }],
    export: { to: 'file' },
    timeouts: {
      client_headers: '1s',
      client_body: '1s',
      idle: '1s',
      first_byte: '10s',
      keep_alive: '2s',
      upstream_keep_alive: '60s',
    },
    limits: { body: '1MiB' },
    shutdown: { grace: '1s' },
  };
}

/** Linux only: `man 5 proc_pid_clear_refs`. Resolves with the resident bytes of now. */
async function resetPeak(pid: number): Promise<number> {
  await writeFile(`/proc/${pid}/clear_refs`, '5');
  return await readPeak(pid);
}

async function readPeak(pid: number): Promise<number> {
  const kib = /VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) * 1024;
}

async function takeLongestTurn(gateway: Child): Promise<number> {
  const line = gateway.untilLine((each) => each.includes('"msg":"stall"'));
  process.kill(gateway.pid, 'SIGUSR2');
  return JSON.parse(await line).ms;
}

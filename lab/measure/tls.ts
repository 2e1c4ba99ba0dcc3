import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createAuthority, type IssuedCertificate } from '../../test/support/certificates.ts';
import { findFreePort } from '../../test/support/free-port.ts';
import { PROMPT_CHARS, writeBody } from '../bench/loads.ts';
import { startReplica } from '../bench/run-case.ts';
import { gatewayTargets } from '../bench/targets/gateway.ts';
import { envoy, nginx } from '../bench/targets/proxies.ts';
import type { Target } from '../bench/targets/target.ts';
import { buildNative } from '../bench/workspace.ts';
import { type Child, type Command, startChild, untilListening } from '../support/child.ts';
import { readCpu, toSpentUs } from '../support/process-tree.ts';
import { startProgram, toCount } from '../support/program.ts';
import { readCircumstances } from '../support/results.ts';
import { toSpread } from '../support/statistics.ts';

const USAGE = `npm run lab -- measure/tls [options]
  Measures what TLS costs the gateway, nginx and Envoy: the CPU of a request on a kept connection and on a new one, and
  new connections per second, with TLS (1.3, AES-128-GCM, a P-256 certificate, whole handshakes) and without. Also
  compares the gateway's own HTTP/1.1 with the HTTP/2 of node:http2, both over TLS and with nothing behind them. Needs
  gcc, h2load (Debian: nghttp2-client) and the rivals (npm run bench -- --install); Linux only.
  --rounds N    turns of each (default 5); the result is the median, with the least and the greatest
  --requests N  requests of a turn on kept connections (default 4000)
  --new N       new connections of a turn (default 400), with one request each`;

const {
  rounds,
  requests,
  new: fresh,
} = startProgram(USAGE, {
  rounds: { type: 'string', default: '5' },
  requests: { type: 'string', default: '4000' },
  new: { type: 'string', default: '400' },
});
const ROUNDS = toCount(rounds);
const KEPT_REQUESTS = toCount(requests);
const NEW_CONNECTIONS = toCount(fresh);
const CLIENTS = 16;
const CIPHER = 'TLS_AES_128_GCM_SHA256';
const PEER = join(import.meta.dirname, '../bench/peers/answer-over-tls.ts');
const START_TIMEOUT_MS = 20_000;
/** V8 compiles hot code during the first ten thousand requests. */
const WARM_REQUESTS = 12_000;

const run = promisify(execFile);

interface Contender {
  readonly name: string;
  readonly url: string;
  /** Options of h2load that choose the protocol. */
  readonly protocol: readonly string[];
  readonly child: Child;
  readonly keptUs: number[];
  readonly newUs: number[];
  readonly newPerSecond: number[];
}

const HTTP1 = ['--h1'];

await measure();

async function measure(): Promise<void> {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'spangate-tls-'));
  await using authority = await createAuthority();
  const certificate = await authority.issue('server');
  const folder = temporary.path;
  const bodyFile = writeBody(folder, 'plain', PROMPT_CHARS);
  await using children = new AsyncDisposableStack();
  const replica = await startReplica(buildNative().replica, 1, folder);
  children.use(replica.child);
  const [replicaPort = 0] = replica.ports;

  const contenders: Contender[] = [];
  const start = async (
    name: string,
    isTls: boolean,
    protocol: readonly string[],
    toCommand: (port: number, folder: string) => Command | Promise<Command>,
  ) => {
    const port = await findFreePort();
    const own = join(folder, name.replaceAll(/\W+/g, '-'));
    mkdirSync(own);
    const child = children.use(
      startChild(await toCommand(port, own), {
        logPath: join(folder, `${name.replaceAll(/\W+/g, '-')}.log`),
      }),
    );
    await untilListening(child, port, START_TIMEOUT_MS);
    const url = `${isTls ? 'https' : 'http'}://127.0.0.1:${port}/v1/chat/completions`;
    contenders.push({ name, url, protocol, child, keptUs: [], newUs: [], newPerSecond: [] });
  };
  const [gateway] = gatewayTargets;
  for (const target of [gateway, nginx, envoy]) {
    if (target === undefined) continue;
    const obstacle = target.findObstacle(null);
    if (obstacle !== null) {
      console.error(`${target.name} is left out: ${obstacle}`);
      continue;
    }
    for (const isTls of [false, true])
      await start(`${target.name}, ${isTls ? 'TLS' : 'plain'}`, isTls, HTTP1, (port, own) =>
        prepare(target, { port, replicaPort, folder: own, certificate: isTls ? certificate : null }),
      );
  }
  const toPeer = (protocol: string) => (port: number) => ({
    file: process.execPath,
    args: [PEER, protocol, String(port), certificate.certPath, certificate.keyPath],
  });
  await start("the gateway's HTTP/1.1 alone, TLS", true, HTTP1, toPeer('http1'));
  await start('node:http2 alone, TLS, a stream per connection', true, ['-m', '1'], toPeer('http2'));
  await start('node:http2 alone, TLS, 10 streams per connection', true, ['-m', '10'], toPeer('http2'));

  for (const contender of contenders) await load(contender, bodyFile, WARM_REQUESTS, CLIENTS);
  for (const contender of contenders) await load(contender, bodyFile, NEW_CONNECTIONS, NEW_CONNECTIONS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const contender of contenders)
      contender.keptUs.push((await load(contender, bodyFile, KEPT_REQUESTS, CLIENTS)).cpuUs);
    for (const contender of contenders) {
      const { cpuUs, perSecond } = await load(contender, bodyFile, NEW_CONNECTIONS, NEW_CONNECTIONS);
      contender.newUs.push(cpuUs);
      contender.newPerSecond.push(perSecond);
    }
  }
  print(contenders);
}

async function prepare(
  target: Target,
  {
    port,
    replicaPort,
    folder,
    certificate,
  }: {
    readonly port: number;
    readonly replicaPort: number;
    readonly folder: string;
    readonly certificate: IssuedCertificate | null;
  },
): Promise<Command> {
  return target.prepare({
    ...{ port, replicaPorts: [replicaPort], collectorPort: replicaPort, folder },
    ...{ closedPort: await findFreePort(), sparePort: await findFreePort(), baseline: null, nodeFlags: [] },
    ...(certificate === null ? {} : { tls: certificate }),
  });
}

/** Sends requests over new connections, and returns the server's CPU time of one and how many ended per second. */
async function load(
  { url, protocol, child, name }: Contender,
  bodyFile: string,
  requestCount: number,
  connectionCount: number,
): Promise<{ readonly cpuUs: number; readonly perSecond: number }> {
  const before = readCpu(child.pid);
  const { stdout } = await run('h2load', [
    ...protocol,
    ...['-t', '1', '-n', String(requestCount), '-c', String(connectionCount)],
    ...['-d', bodyFile, '-H', 'Content-Type: application/json', `--tls13-ciphers=${CIPHER}`, url],
  ]);
  const spentUs = toSpentUs(before, readCpu(child.pid));
  const [, succeeded] = stdout.match(/, (\d+) succeeded/) ?? [];
  const [, perSecond] = stdout.match(/finished in [^,]+, ([\d.]+) req\/s/) ?? [];
  if (Number(succeeded) !== requestCount) throw new Error(`${name}: requests failed\n${stdout}`);
  if (url.startsWith('https:') && !stdout.includes(`Cipher: ${CIPHER}`))
    throw new Error(`${name}: another cipher\n${stdout}`);
  return { cpuUs: spentUs / requestCount, perSecond: Number(perSecond) };
}

function print(contenders: readonly Contender[]): void {
  const { date, commit, machine } = readCircumstances();
  console.log(`${date}, commit ${commit}, ${machine}\n`);
  console.log(
    '| | CPU per request, kept connection, µs | CPU per new connection with a request, µs | new connections/s |',
  );
  console.log('|---|---:|---:|---:|');
  for (const { name, keptUs, newUs, newPerSecond } of contenders)
    console.log(`| ${name} | ${[keptUs, newUs, newPerSecond].map(toCell).join(' | ')} |`);
}

function toCell(values: readonly number[]): string {
  const { median, min, max } = toSpread(values);
  return `${median.toFixed(0)} (${min.toFixed(0)}–${max.toFixed(0)})`;
}

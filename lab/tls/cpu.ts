import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createAuthority, type IssuedCertificate } from '#testkit/certificates.ts';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { type Child, type Command, startChild, untilListening } from '#testkit/programs/child.ts';
import { readCpu, toSpentUs } from '#testkit/programs/process-tree.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { readCircumstances } from '#testkit/programs/results.ts';
import { toSpread } from '#testkit/programs/statistics.ts';
import { PROMPT_CHARS, writeBody } from '../bench/loads.ts';
import { startReplica } from '../bench/run-case.ts';
import { gatewayTargets } from '../bench/targets/gateway.ts';
import { envoy, nginx } from '../bench/targets/proxies.ts';
import type { Target } from '../bench/targets/target.ts';
import { buildNative } from '../bench/workspace.ts';

const USAGE = `npm run lab -- tls/cpu [options]
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

/** How a contender is started, and reached. */
interface Start {
  readonly name: string;
  readonly isTls: boolean;
  readonly protocol: readonly string[];
  readonly toCommand: (port: number, folder: string) => Command | Promise<Command>;
}

const HTTP1 = ['--h1'];

await measure();

async function measure(): Promise<void> {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'spangate-tls-'));
  await using authority = await createAuthority();
  await using children = new AsyncDisposableStack();
  const folder = temporary.path;
  const bodyFile = writeBody(folder, 'plain', PROMPT_CHARS);
  const replica = await startReplica(buildNative().replica, 1, folder);
  children.use(replica.child);
  const [replicaPort = 0] = replica.ports;
  const certificate = await authority.issue('server');
  const contenders: Contender[] = [];
  for (const each of [...toProxyStarts(replicaPort, certificate), ...toPeerStarts(certificate)]) {
    const contender = await start(each, folder);
    children.use(contender.child);
    contenders.push(contender);
  }

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

/** The gateway and its rivals, each with TLS and without. */
function toProxyStarts(replicaPort: number, certificate: IssuedCertificate): readonly Start[] {
  const isPresent = ({ name, findObstacle }: Target) => {
    const obstacle = findObstacle(null);
    if (obstacle !== null) console.error(`${name} is left out: ${obstacle}`);
    return obstacle === null;
  };
  const toStart = (target: Target, isTls: boolean): Start => ({
    name: `${target.name}, ${isTls ? 'TLS' : 'plain'}`,
    isTls,
    protocol: HTTP1,
    toCommand: async (port, folder) =>
      target.prepare({
        port,
        replicaPorts: [replicaPort],
        collectorPort: replicaPort,
        folder,
        closedPort: await findFreePort(),
        sparePort: await findFreePort(),
        baseline: null,
        nodeFlags: [],
        ...(isTls ? { tls: certificate } : {}),
      }),
  });
  return [...gatewayTargets.slice(0, 1), nginx, envoy]
    .filter(isPresent)
    .flatMap((target) => [toStart(target, false), toStart(target, true)]);
}

/** Servers with nothing behind them, which differ in their HTTP. */
function toPeerStarts({ certPath, keyPath }: IssuedCertificate): readonly Start[] {
  const toStart = (name: string, peerProtocol: string, protocol: readonly string[]): Start => ({
    name,
    isTls: true,
    protocol,
    toCommand: (port) => ({
      file: process.execPath,
      args: [PEER, peerProtocol, String(port), certPath, keyPath],
    }),
  });
  return [
    toStart("the gateway's HTTP/1.1 alone, TLS", 'http1', HTTP1),
    toStart('node:http2 alone, TLS, a stream per connection', 'http2', ['-m', '1']),
    toStart('node:http2 alone, TLS, 10 streams per connection', 'http2', ['-m', '10']),
  ];
}

async function start({ name, isTls, protocol, toCommand }: Start, parent: string): Promise<Contender> {
  const folder = join(parent, name.replaceAll(/\W+/g, '-'));
  mkdirSync(folder);
  const port = await findFreePort();
  const child = startChild(await toCommand(port, folder), { logPath: join(folder, 'output.log') });
  await untilListening(child, port, START_TIMEOUT_MS);
  const url = `${isTls ? 'https' : 'http'}://127.0.0.1:${port}/v1/chat/completions`;
  return { name, url, protocol, child, keptUs: [], newUs: [], newPerSecond: [] };
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

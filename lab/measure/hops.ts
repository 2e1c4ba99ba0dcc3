import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { Session } from 'node:inspector';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startProgram } from '../support/program.ts';

/**
 * Lists the files and functions of src/ and otel/ that one warm chat completion runs:
 * `npm run lab -- measure/hops [--stream] [--functions]`. V8 counts the calls in the gateway's main thread. A replica and
 * a collector hold their answers at the places where one path ends and the next begins, so that each path is:
 *
 * - request: from the client's bytes until the replica has the whole request;
 * - response: until the client has all of the response but its end;
 * - end: until the client has the end of the response;
 * - record: until the collector has the record.
 *
 * Several requests are measured, and what most of them ran counts: a timer that runs in between does not.
 */

const USAGE = `npm run lab -- measure/hops [options]
  --stream      count a streamed answer
  --functions   list the functions, not only the files`;

const PATHS = ['request', 'response', 'end', 'record'] as const;
type Path = (typeof PATHS)[number];

/** The functions that ran, by file. The number behind `@` is where the function begins, in characters. */
type Calls = Readonly<Record<string, readonly string[]>>;

/** What the gateway's process tells of a function, as in the DevTools protocol. */
interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
}

const ROOT = process.cwd();
const WARM_UP_REQUESTS = 50;
/** In its first 10 s the gateway looks for a debugger that nobody asked for, 50 times per second. */
const WARM_UP_MS = 11_000;
const ROUNDS = 15;
/** Longer than a record needs from its request to the collector. */
const SETTLE_MS = 200;
const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
});
const EVENTS = [
  { choices: [{ index: 0, delta: { role: 'assistant', content: 'Hello' }, finish_reason: null }] },
  { choices: [{ index: 0, delta: { content: ' there' }, finish_reason: null }] },
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } },
].map(
  (event) =>
    `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model: 'm', ...event })}\n\n`,
);

async function measure(): Promise<void> {
  const values = startProgram(USAGE, {
    stream: { type: 'boolean', default: false },
    functions: { type: 'boolean', default: false },
  });
  const stateDir = await mkdtemp(join(tmpdir(), 'spangate-hops-'));
  const requests = new Inbox();
  const exports = new Inbox();
  const replica = await listen((message, response) => requests.take(message, response));
  const collector = await listen((message, response) => exports.take(message, response));
  const gateway = await startGateway(stateDir, replica.url, collector.url);
  const send = (): Promise<IncomingMessage> => sendChat(gateway.url, values.stream);
  try {
    for (let sent = 0; sent < WARM_UP_REQUESTS; sent++) {
      const answered = send();
      const held = await requests.next();
      await held.begin(values.stream);
      await held.end();
      await buffer(await answered);
    }
    await exports.answerFor(WARM_UP_MS);
    const rounds: Record<Path, Calls>[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await exports.answerFor(SETTLE_MS);
      await gateway.takeCalls();
      const answered = send();
      const held = await requests.next();
      const toReplica = await gateway.takeCalls();
      await held.begin(values.stream);
      const response = await answered;
      await once(response, 'readable');
      const toClient = await gateway.takeCalls();
      const ended = buffer(response);
      await held.end();
      await ended;
      const toEnd = await gateway.takeCalls();
      const exported = await exports.next();
      const toCollector = await gateway.takeCalls();
      await exported.end();
      rounds.push({ request: toReplica, response: toClient, end: toEnd, record: toCollector });
    }
    const paths = PATHS.map((path) => ({ path, calls: inMost(rounds.map((round) => round[path])) }));
    for (const { path, calls } of paths) report(path, calls, values.functions);
    const { files, functionCount } = countsOf(inAny(paths.map(({ calls }) => calls)));
    console.log(`together: ${files} files, ${functionCount} functions`);
  } finally {
    gateway.child.kill();
    await once(gateway.child, 'exit');
    replica.close();
    collector.close();
    await rm(stateDir, { recursive: true });
  }
}

/** A message that a server has received and not yet answered. */
interface Held {
  /** Sends the answer without its end. */
  begin(isStream: boolean): Promise<void>;
  /** Sends the rest of the answer. */
  end(): Promise<void>;
}

/** The whole messages that a server has received, in their order. */
class Inbox {
  readonly #received: Held[] = [];
  #waiting: ((held: Held) => void) | null = null;

  async take(message: IncomingMessage, response: ServerResponse): Promise<void> {
    await buffer(message);
    let rest = '{}';
    const held: Held = {
      begin: async (isStream) => {
        response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json');
        if (!isStream) response.setHeader('content-length', Buffer.byteLength(ANSWER));
        rest = isStream ? 'data: [DONE]\n\n' : ANSWER.slice(-1);
        response.write(isStream ? EVENTS.join('') : ANSWER.slice(0, -1));
      },
      end: async () => {
        if (response.closed) return;
        response.end(rest);
        await once(response, 'close');
      },
    };
    if (this.#waiting === null) this.#received.push(held);
    else this.#waiting(held);
  }

  async next(): Promise<Held> {
    const held = this.#received.shift();
    if (held !== undefined) return held;
    const { promise, resolve } = Promise.withResolvers<Held>();
    this.#waiting = resolve;
    const received = await promise;
    this.#waiting = null;
    return received;
  }

  /** Answers what was received, and what arrives in this time. */
  async answerFor(durationMs: number): Promise<void> {
    const untilMs = performance.now() + durationMs;
    do {
      for (const held of this.#received.splice(0)) await held.end();
      await sleep(SETTLE_MS / 2);
    } while (performance.now() < untilMs || this.#received.length > 0);
  }
}

async function listen(onMessage: (message: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(onMessage).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

async function sendChat(gatewayUrl: string, stream: boolean): Promise<IncomingMessage> {
  const body = JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'Good morning' }] });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const sent = request(`${gatewayUrl}/v1/chat/completions`, { agent, method: 'POST', headers }).end(body);
  const [response] = await once(sent, 'response');
  return response;
}

async function startGateway(stateDir: string, replicaUrl: string, collectorUrl: string) {
  const configPath = join(stateDir, 'gateway.yaml');
  const config = {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    state_dir: join(stateDir, 'state'),
    replicas: [{ name: 'a', url: replicaUrl, models: ['m'], engine: 'openai' }],
    export: { endpoint: collectorUrl, interval: '20ms' },
  };
  await writeFile(configPath, JSON.stringify(config));
  const args = ['--import', import.meta.filename, join(ROOT, 'src/main.ts'), '-config', configPath];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  const { stdout } = child;
  if (stdout === null) throw new Error('a pipe was asked for');
  const address = await readAddress(stdout);
  stdout.resume();
  return { child, url: `http://${address}`, takeCalls: () => takeCalls(child) };
}

/** The listener's address, from the log. */
async function readAddress(log: Readable): Promise<string> {
  for await (const line of createInterface({ input: log })) {
    const { msg, listen } = JSON.parse(line);
    if (msg === 'serving') return listen;
  }
  throw new Error('the gateway did not start');
}

/** What the gateway has run since the last time. */
async function takeCalls(child: ChildProcess): Promise<Calls> {
  child.send('take');
  const [calls] = await once(child, 'message');
  return calls;
}

/** In the gateway's process, before its first line: counts calls, and tells them when it is asked. */
function countCalls(): void {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  process.on('message', () => {
    session.post('Profiler.takePreciseCoverage', (error, coverage) => {
      if (error !== null) throw error;
      process.send?.(toCalls(coverage.result));
    });
  });
}

function toCalls(scripts: readonly ScriptCoverage[]): Calls {
  const calls: Record<string, string[]> = {};
  for (const { url, functions } of scripts) {
    if (!url.startsWith('file:')) continue;
    const file = relative(ROOT, fileURLToPath(url));
    if (!/^(?:src|otel)\//.test(file)) continue;
    for (const { functionName, ranges } of functions) {
      const [range] = ranges;
      if (range === undefined || range.count === 0) continue;
      // The module itself begins at 0. V8 makes one function of a class's fields, beside its constructor.
      if (range.startOffset === 0 || functionName.startsWith('<')) continue;
      calls[file] ??= [];
      calls[file].push(`${functionName || '(anonymous)'}@${range.startOffset}`);
    }
  }
  return calls;
}

/** The calls that are in more than half of these. */
function inMost(rounds: readonly Calls[]): Calls {
  const kept: Record<string, string[]> = {};
  for (const file of new Set(rounds.flatMap(Object.keys)))
    for (const name of new Set(rounds.flatMap((calls) => calls[file] ?? []))) {
      const count = rounds.filter((calls) => calls[file]?.includes(name)).length;
      if (count <= rounds.length / 2) continue;
      kept[file] ??= [];
      kept[file].push(name);
    }
  return kept;
}

/** The calls that are in any of these. */
function inAny(paths: readonly Calls[]): Calls {
  const files = new Set(paths.flatMap(Object.keys));
  const namesIn = (file: string) => [...new Set(paths.flatMap((calls) => calls[file] ?? []))];
  return Object.fromEntries([...files].map((file) => [file, namesIn(file)]));
}

function countsOf(calls: Calls) {
  return { files: Object.keys(calls).length, functionCount: Object.values(calls).flat().length };
}

function report(path: Path, calls: Calls, withNames: boolean): void {
  const { files, functionCount } = countsOf(calls);
  console.log(`${path}: ${files} files, ${functionCount} functions`);
  for (const [file, names] of Object.entries(calls).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    console.log(`  ${file} ${names.length}`);
    if (withNames) console.log(`    ${names.map((name) => name.replace(/@.*/, '')).join(', ')}`);
  }
}

// The gateway's process imports this file before its own.
if (import.meta.main) await measure();
else countCalls();

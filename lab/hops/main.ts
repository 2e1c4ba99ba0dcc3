import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { Agent, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { startProgram } from '#testkit/programs/program.ts';
import { type Calls, countsOf, inAny, inMost } from './calls.ts';
import { startCountedGateway } from './counted-gateway.ts';
import { startHoldingServer } from './held-answers.ts';

/**
 * Lists the files and functions of src/ and otel/ that one warm chat completion runs:
 * `npm run lab -- hops [--stream] [--functions]`. V8 counts the calls in the gateway's main thread. A replica and
 * a collector hold their answers at the places where one path ends and the next begins, so that each path is:
 *
 * - request: from the client's bytes until the replica has the whole request;
 * - response: until the client has all of the response but its end;
 * - end: until the client has the end of the response;
 * - record: until the collector has the record.
 *
 * Several requests are measured, and what most of them ran counts: a timer that runs in between does not.
 */

const USAGE = `npm run lab -- hops [options]
  --stream      count a streamed answer
  --functions   list the functions, not only the files`;

const PATHS = ['request', 'response', 'end', 'record'] as const;
type Path = (typeof PATHS)[number];

const WARM_UP_REQUESTS = 50;
/** In its first 10 s the gateway looks for a debugger that nobody asked for, 50 times per second. */
const WARM_UP_MS = 11_000;
const ROUNDS = 15;
/** Longer than a record needs from its request to the collector. */
const SETTLE_MS = 200;

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

await measure();

async function measure(): Promise<void> {
  const values = startProgram(USAGE, {
    stream: { type: 'boolean', default: false },
    functions: { type: 'boolean', default: false },
  });
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-hops-'));
  await using replica = await startHoldingServer();
  await using collector = await startHoldingServer();
  const { inbox: requests } = replica;
  const { inbox: exports } = collector;
  const gateway = await startCountedGateway(folder.path, replica.url, collector.url);
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
  }
}

async function sendChat(gatewayUrl: string, stream: boolean): Promise<IncomingMessage> {
  const body = JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'Good morning' }] });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const sent = request(`${gatewayUrl}/v1/chat/completions`, { agent, method: 'POST', headers }).end(body);
  const [response] = await once(sent, 'response');
  return response;
}

function report(path: Path, calls: Calls, withNames: boolean): void {
  const { files, functionCount } = countsOf(calls);
  console.log(`${path}: ${files} files, ${functionCount} functions`);
  for (const [file, names] of Object.entries(calls).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    console.log(`  ${file} ${names.length}`);
    if (withNames) console.log(`    ${names.map((name) => name.replace(/@.*/, '')).join(', ')}`);
  }
}

import { mkdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/programs/gateway-process.ts';
import { readPeakBytes, readResidentBytes, resetPeak } from '#testkit/programs/process-memory.ts';

/** How often somebody comes again who finds no place. */
const MAX_TRIES = 20;

/** What came of many calls that wait for one drain. */
export interface AdminWaitsResult {
  readonly calls: number;
  /** Answered when the drain was over, with `safe_to_stop: true`. */
  readonly waited: number;
  /** Answered at once with 503 `too_many_waits`. */
  readonly refused: number;
  /** Closed without an answer: more connections than the listener accepts. */
  readonly turnedAway: number;
  /** Anything else. */
  readonly failures: readonly string[];
  /** Calls of others while those waited, each on a new connection: answered with 200, and all. */
  readonly others: {
    readonly answered: number;
    readonly all: number;
    /** How often one of them found no place and came again. */
    readonly repeats: number;
    readonly longestMs: number;
  };
  /** Chat completions meanwhile that were not answered with 200. */
  readonly failedChats: number;
  readonly memory: { readonly before: number; readonly peak: number };
}

/** Holds one request on a replica, and lets this many calls wait for its end, each on a connection of its own. */
export async function sendAdminWaits(calls: number, folder: string): Promise<AdminWaitsResult> {
  await mkdir(folder, { recursive: true });
  await using stack = new AsyncDisposableStack();
  const gate = createGate();
  const busy = stack.use(await startFakeReplica({ name: 'busy', script: gate.script }));
  const other = stack.use(await startFakeReplica({ name: 'other' }));
  const gateway = stack.use(
    await startGateway(folder, {
      gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
      replicas: [busy, other].map(({ name, url }) => ({ name, url, models: ['m'], engine: 'openai' })),
      export: { to: 'file' },
    }),
  );
  const chat = () =>
    fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', body: '{"model":"m"}' }).then(
      async (response) => {
        await response.text();
        return response.status;
      },
      () => 0,
    );
  const held = chat();
  await busy.untilRequests(1);
  await resetPeak(gateway.pid);
  const before = readResidentBytes(gateway.pid);
  const call = 'POST /admin/replicas/busy/drain?wait=1h HTTP/1.1\r\n';
  const answers = Array.from({ length: calls }, () => ask(gateway.adminUrl, call));
  const others: (readonly [outcome: string, ms: number])[] = [];
  let failedChats = 0;
  let repeats = 0;
  for (let round = 0; round < 50; round++) {
    const startedMs = performance.now();
    let outcome = 'closed';
    for (let tries = 0; outcome === 'closed' && tries < MAX_TRIES; tries++) {
      outcome = await ask(gateway.adminUrl, 'GET /admin/stats HTTP/1.1\r\n').answer;
      if (outcome === 'closed') repeats += 1;
    }
    others.push([outcome, performance.now() - startedMs]);
    if ((await chat()) !== 200) failedChats += 1;
    await sleep(20);
  }
  gate.open();
  await held;
  const outcomes = await Promise.all(answers.map(({ answer }) => answer));
  const peak = readPeakBytes(gateway.pid);
  for (const { socket } of answers) socket.destroy();
  const count = (wanted: string) => outcomes.filter((outcome) => outcome === wanted).length;
  const expected = ['safe', '503 too_many_waits', 'closed'];
  return {
    calls,
    waited: count('safe'),
    refused: count('503 too_many_waits'),
    turnedAway: count('closed'),
    failures: outcomes.filter((outcome) => !expected.includes(outcome)),
    others: {
      answered: others.filter(([outcome]) => outcome === '200').length,
      all: others.length,
      repeats,
      longestMs: Math.max(...others.map(([, ms]) => ms)),
    },
    failedChats,
    memory: { before, peak },
  };
}

/** Sends a call on a connection of its own, which stays open as the gateway likes. */
function ask(adminUrl: string, line: string): { readonly socket: Socket; readonly answer: Promise<string> } {
  const { hostname, port } = new URL(adminUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(`${line}Host: 127.0.0.1\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n\r\n`);
  const { promise, resolve } = Promise.withResolvers<string>();
  let text = '';
  socket.setEncoding('latin1').on('data', (piece: string) => {
    text += piece;
    const [head = '', body = ''] = text.split('\r\n\r\n');
    if (body.length < Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.POSITIVE_INFINITY)) return;
    const status = head.split(' ')[1] ?? '';
    const code = /"code":"(\w+)"/.exec(body)?.[1];
    if (status === '200' && body.includes('"safe_to_stop":true')) resolve('safe');
    else resolve(code === undefined ? status : `${status} ${code}`);
  });
  socket.once('error', () => undefined).once('close', () => resolve('closed'));
  return { socket, answer: promise };
}

import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startGateway } from '#testkit/programs/gateway-process.ts';
import { readPeakBytes, readResidentBytes, resetPeak } from '#testkit/programs/process-memory.ts';

const MIB = 1024 * 1024;
const REPLICAS = 3;
const ANSWER = JSON.stringify({ object: 'chat.completion', choices: [] });

/** What is sent at once, and to whom. */
export interface LargeBodiesCase {
  readonly name: string;
  readonly count: number;
  readonly bodyBytes: number;
  /** How long a replica reads nothing of a body. */
  readonly pauseMs: number;
  /** Added to the environment of the gateway. */
  readonly env?: Readonly<Record<string, string>>;
  /** How long the memory may take to come back. */
  readonly recoveryMs: number;
}

/** What came of it, sent twice. */
export interface LargeBodiesResult {
  readonly served: number;
  /** Answered with 503 `overloaded`, as the documents say. */
  readonly refused: number;
  /** Anything else: another status, a broken connection, a body that reached the replica changed. */
  readonly failures: readonly string[];
  /** How long the first time took. */
  readonly seconds: number;
  /** Resident memory of the gateway: `after` the first burst, and the peak of both. */
  readonly memory: {
    readonly before: number;
    readonly peak: number;
    readonly after: number;
    readonly secondPeak: number;
  };
  /** Status of a small request while all others ran, and afterwards. */
  readonly meanwhile: readonly string[];
  readonly afterwards: string;
}

/** Sends all bodies at once to a gateway in a process of its own, and once more when they have their answers. */
export async function sendLargeBodies(given: LargeBodiesCase, folder: string): Promise<LargeBodiesResult> {
  const { count, bodyBytes, pauseMs, recoveryMs, env = {} } = given;
  await mkdir(folder, { recursive: true });
  await using stack = new AsyncDisposableStack();
  const failures: string[] = [];
  const replicas = await Promise.all(
    Array.from({ length: REPLICAS }, async () =>
      stack.adopt(await startReplica(bodyBytes, pauseMs, failures), (server) => {
        server.closeAllConnections();
        server.close();
      }),
    ),
  );
  const config = {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    replicas: replicas.map((server, index) => ({
      name: `r${index}`,
      models: ['m'],
      engine: 'openai',
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    })),
    export: { to: 'file' },
  };
  const gateway = stack.use(await startGateway(folder, config, env));
  const small = toRequest(Buffer.from('{"model":"m"}'));
  await send(gateway.url, small);
  await resetPeak(gateway.pid);
  const before = readResidentBytes(gateway.pid);
  const large = toRequest(toBody(bodyBytes));
  const startedMs = performance.now();
  const first = await sendBurst(gateway.url, { count, large, small });
  const seconds = (performance.now() - startedMs) / 1000;
  const peak = readPeakBytes(gateway.pid);
  const after = await untilMemoryIsBack(gateway.pid, { before, recoveryMs }, () => send(gateway.url, small));
  const second = await sendBurst(gateway.url, { count, large, small });
  const secondPeak = readPeakBytes(gateway.pid);
  const outcomes = [...first.outcomes, ...second.outcomes];
  const served = outcomes.filter((outcome) => outcome === '200').length;
  const refused = outcomes.filter((outcome) => outcome === '503 overloaded').length;
  failures.push(...outcomes.filter((outcome) => outcome !== '200' && outcome !== '503 overloaded'));
  const meanwhile = [...first.meanwhile, ...second.meanwhile];
  const afterwards = await send(gateway.url, large);
  return {
    served,
    refused,
    failures,
    seconds,
    meanwhile,
    afterwards,
    memory: { before, peak, after, secondPeak },
  };
}

interface Burst {
  readonly count: number;
  readonly large: readonly Buffer[];
  readonly small: readonly Buffer[];
}

/** Sends all large requests at once, and small ones one after the other meanwhile. */
async function sendBurst(url: string, { count, large, small }: Burst) {
  let left = count;
  const sending = Array.from({ length: count }, () =>
    send(url, large).finally(() => {
      left -= 1;
    }),
  );
  const meanwhile: string[] = [];
  while (left > 0) {
    meanwhile.push(await send(url, small));
    await sleep(200);
  }
  return { outcomes: await Promise.all(sending), meanwhile };
}

/** Waits under a light load until most of the memory is given back, or the time is up. */
async function untilMemoryIsBack(
  pid: number,
  { before, recoveryMs }: { readonly before: number; readonly recoveryMs: number },
  sendSmall: () => Promise<unknown>,
): Promise<number> {
  const untilMs = performance.now() + recoveryMs;
  for (;;) {
    const now = readResidentBytes(pid);
    if (now < before + 100 * MIB || performance.now() > untilMs) return now;
    await sendSmall();
    await sleep(20);
  }
}

function toBody(sizeBytes: number): Buffer {
  const [head, tail] = ['{"model":"m","messages":[{"role":"user","content":"', '"}]}'];
  return Buffer.concat([
    Buffer.from(head),
    Buffer.alloc(sizeBytes - head.length - tail.length, 'x'),
    Buffer.from(tail),
  ]);
}

const toRequest = (body: Buffer): readonly Buffer[] => [
  Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`,
  ),
  body,
];

/** Sends on a connection of its own; the bytes are shared by all. Resolves with the status and code of the answer. */
async function send(url: string, pieces: readonly Buffer[]): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  let answer = '';
  let broken = 'closed';
  socket.setEncoding('latin1').on('data', (piece: string) => {
    answer += piece;
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    broken = error.code ?? 'error';
  });
  for (const piece of pieces) socket.write(piece);
  await once(socket, 'close').catch(() => undefined);
  const status = /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1];
  if (status === undefined) return broken;
  const code = /"code":"(\w+)"/.exec(answer)?.[1];
  return code === undefined ? status : `${status} ${code}`;
}

/** A replica that reads bodies, keeps none, and notes those of a wrong length. */
async function startReplica(bodyBytes: number, pauseMs: number, failures: string[]): Promise<Server> {
  const server = createServer({ requestTimeout: 0 }, async (request, response) => {
    if (request.method === 'GET') {
      response.end('{"data":[{"id":"m"}]}');
      return;
    }
    const announced = Number(request.headers['content-length']);
    if (announced === bodyBytes) await sleep(pauseMs);
    let received = 0;
    request.on('data', ({ length }: Buffer) => {
      received += length;
    });
    request.on('end', () => {
      if (received !== announced) failures.push(`a replica got ${received} bytes of ${announced}`);
      response.setHeader('Content-Type', 'application/json').end(ANSWER);
    });
    request.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { pino } from 'pino';
import { parseConfig } from '#config';
import { createGateway } from '#gateway';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { NO_SECRETS } from '../../src/config/secrets/environment-secrets.ts';

const USAGE = `npm run lab -- measure/stall [options]
  Measures how long a large request body blocks the event loop of the gateway, which runs in this process; client and
  replica run in another one. "worst" and "p99" are the delays that other streams would have seen, "own work" is the
  CPU time of the gateway in its longest turn. The first row, of small bodies, shows the noise of the machine.
  --megabytes N  size of the bodies (20)`;

const MEGABYTE = 1_000_000;
const REPEATS = 3;

interface Shape {
  readonly name: string;
  /** A body of about this size. */
  readonly toBody: (sizeBytes: number) => string;
  /** Size of the HTTP chunks; absent: a Content-Length. */
  readonly chunkBytes?: number;
}

const chatOf = (messages: string, stream = true) => `{"model":"m","messages":${messages},"stream":${stream}}`;
const fill = (unit: string, sizeBytes: number) => unit.repeat(Math.floor(sizeBytes / unit.length));

const SHAPES: readonly Shape[] = [
  { name: 'small', toBody: () => chatOf('[{"role":"user","content":"Hi"}]') },
  {
    name: 'base64 image',
    toBody: (size) =>
      chatOf(
        `[{"role":"user","content":[{"type":"text","text":"See"},{"type":"image_url","image_url":{"url":"data:image/png;base64,${fill('iVBORw0K', size)}"}}]}]`,
      ),
  },
  {
    name: 'long text',
    toBody: (size) => chatOf(`[{"role":"user","content":"${fill('ein längerer Satz. ', size)}"}]`),
  },
  { name: 'escaped text', toBody: (size) => chatOf(`[{"content":"${fill('\\u00e9', size)}"}]`) },
  { name: 'digits', toBody: (size) => chatOf(`[${fill('0,', size)}0]`) },
  { name: 'empty parts', toBody: (size) => chatOf(`[{"content":[${fill('{"text":""},', size)}""]}]`) },
  { name: 'messages', toBody: (size) => chatOf(`[${fill('{"role":"u","content":"x"},', size)}0]`) },
  { name: 'top-level keys', toBody: (size) => `{${fill('"a":0,', size)}"model":"m","stream":true}` },
  { name: 'white space', toBody: (size) => chatOf(`[${fill(' \n', size)}]`) },
  { name: 'model name', toBody: (size) => `{"model":"${fill('x', size)}"}` },
  {
    name: 'stream options',
    toBody: (size) => `{"model":"m","stream":true,"stream_options":{${fill('"a":0,', size)}"b":0}}`,
  },
  // The largest bodies that are read in one turn: 128 KiB, or 4,096 members and elements.
  { name: 'digits inline', toBody: () => chatOf(`[${fill('0,', 2 * 4_000)}0]`) },
  {
    name: 'empty parts inline',
    toBody: () => chatOf(`[{"content":[${fill('{"text":""},', 12 * 2_000)}""]}]`),
  },
  { name: 'escapes inline', toBody: () => chatOf(`[{"content":"${fill('\\n', 128 * 1024 - 80)}"}]`) },
  { name: '1-byte chunks', toBody: (size) => chatOf(`["${fill('x', size / 10)}"]`), chunkBytes: 1 },
];

interface LoadJob {
  readonly gatewayUrl: string;
  readonly shape: string;
  readonly sizeBytes: number;
}

if (process.send !== undefined) await runLoad();
else {
  const { megabytes } = startProgram(USAGE, { megabytes: { type: 'string', default: '20' } });
  await measure(toCount(megabytes) * MEGABYTE);
}

async function measure(sizeBytes: number): Promise<void> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-stall-'));
  const load = fork(import.meta.filename);
  const [replicaUrl] = (await once(load, 'message')) as [string];
  const gateway = createGateway(
    parseConfig(
      JSON.stringify({
        gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
        export: { to: 'file' },
        state_dir: folder.path,
        replicas: [{ name: 'a', url: replicaUrl, models: ['m'], engine: 'openai' }],
        limits: { body: '64MiB' },
      }),
      { path: 'gateway.yaml', env: {} },
    ),
    { secrets: NO_SECRETS, log: pino({ level: 'silent' }), pid: process.pid },
  );
  const { listen } = await gateway.start();
  console.log(`bodies of ${sizeBytes / MEGABYTE} MB, ${REPEATS} each: delay of the event loop, in ms`);
  for (const { name } of SHAPES) {
    const histogram = monitorEventLoopDelay({ resolution: 1 });
    const turns = watchTurns();
    const cpuBefore = process.threadCpuUsage();
    histogram.enable();
    const job: LoadJob = { gatewayUrl: `http://127.0.0.1:${listen.port}`, shape: name, sizeBytes };
    load.send(job);
    const [statuses] = (await once(load, 'message')) as [readonly number[]];
    histogram.disable();
    const worstTurnMs = turns.stop();
    const { user, system } = process.threadCpuUsage(cpuBefore);
    const toMs = (nanoseconds: number) => (nanoseconds / 1e6).toFixed(1).padStart(7);
    const cpuMs = ((user + system) / 1000 / REPEATS).toFixed(1).padStart(7);
    console.log(
      `${name.padEnd(20)} worst ${toMs(histogram.max)}  p99 ${toMs(histogram.percentile(99))}  ` +
        `own work ${worstTurnMs.toFixed(1).padStart(6)}  CPU per request ${cpuMs}  status ${[...new Set(statuses)].join()}`,
    );
  }
  await gateway.close();
  load.disconnect();
}

/**
 * The most CPU time in ms that this thread spent in one turn of its loop. On a shared machine this separates our stalls
 * from those of others. If the kernel counts in ticks, it has steps of 4 ms.
 */
function watchTurns(): { readonly stop: () => number } {
  let worstMs = 0;
  let before = process.threadCpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    worstMs = Math.max(worstMs, (user + system) / 1000);
  }, 1);
  return {
    stop: () => {
      clearInterval(timer);
      return worstMs;
    },
  };
}

/** The other process: a replica, and a client that posts the bodies it is told to. */
async function runLoad(): Promise<void> {
  const replica = createServer((incoming, response) => {
    incoming.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"choices":[]}');
    });
  });
  replica.listen(0, '127.0.0.1');
  await once(replica, 'listening');
  process.on('message', async (job: LoadJob) => {
    const statuses: number[] = [];
    for (let i = 0; i < REPEATS; i++) statuses.push(await post(job));
    process.send?.(statuses);
  });
  process.once('disconnect', () => process.exit());
  process.send?.(`http://127.0.0.1:${(replica.address() as AddressInfo).port}`);
}

async function post({ gatewayUrl, shape, sizeBytes }: LoadJob): Promise<number> {
  const found = SHAPES.find(({ name }) => name === shape);
  const body = Buffer.from(found?.toBody(sizeBytes) ?? '');
  const outgoing = request(`${gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: found?.chunkBytes === undefined ? { 'Content-Length': body.length } : {},
    agent: false,
  });
  const answered = once(outgoing, 'response');
  if (found?.chunkBytes === undefined) outgoing.end(body);
  else {
    outgoing.flushHeaders();
    const [socket] = (await once(outgoing, 'socket')) as [Socket];
    if (socket.connecting) await once(socket, 'connect');
    socket.write(toChunked(body, found.chunkBytes));
  }
  const [response] = await answered;
  response.resume();
  await once(response, 'end');
  outgoing.destroy();
  return response.statusCode;
}

function toChunked(body: Buffer, chunkBytes: number): string {
  const pieces: string[] = [];
  for (let at = 0; at < body.length; at += chunkBytes) {
    const piece = body.toString('latin1', at, at + chunkBytes);
    pieces.push(`${piece.length.toString(16)}\r\n${piece}\r\n`);
  }
  return `${pieces.join('')}0\r\n\r\n`;
}

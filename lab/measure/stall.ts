import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { pino } from 'pino';
import { parseConfig } from '../../src/config/load.ts';
import { createGateway } from '../../src/gateway.ts';

/**
 * Measures how long one large request body keeps the gateway from everything else: `node lab/measure/stall.ts
 * [megabytes]`. The gateway runs in this process with the delay of its event loop watched, client and replica in
 * another. `worst` and `p99` are what other streams would have felt, `own work` is our part of the worst; the first
 * line, of small bodies, tells what the machine itself does.
 */

const MEGABYTE = 1_000_000;
const REPEATS = 3;

interface Shape {
  readonly name: string;
  /** The body of about so many bytes. */
  readonly toBody: (sizeBytes: number) => string;
  /** Sent as HTTP chunks of this size; without it, with a Content-Length. */
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
  // As much as is read at once: 128 KiB, or 4,096 members and elements.
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

if (process.argv[2] === '--load') await runLoad();
else await measure(Number(process.argv[2] ?? 20) * MEGABYTE);

async function measure(sizeBytes: number): Promise<void> {
  const stateDir = await mkdtemp(join(tmpdir(), 'spangate-stall-'));
  const load = fork(import.meta.filename, ['--load']);
  const [replicaUrl] = (await once(load, 'message')) as [string];
  const gateway = createGateway(
    parseConfig(
      JSON.stringify({
        gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
        export: { to: 'file' },
        state_dir: stateDir,
        replicas: [{ name: 'a', url: replicaUrl, models: ['m'], engine: 'openai' }],
        limits: { body: '64MiB' },
      }),
      { path: 'gateway.yaml', env: {} },
    ),
    { env: {}, log: pino({ level: 'silent' }) },
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
        `own work ${worstTurnMs.toFixed(1).padStart(6)}  CPU a request ${cpuMs}  status ${[...new Set(statuses)].join()}`,
    );
  }
  await gateway.close();
  load.disconnect();
  await rm(stateDir, { recursive: true });
}

/**
 * The most work that this thread did between two turns of its loop, in ms of CPU. On a machine that others use,
 * too, this tells our stalls from theirs; where the kernel counts in ticks it comes in steps of 4 ms.
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

/** The other process: a replica that reads and answers, and a client that posts what it is told to. */
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

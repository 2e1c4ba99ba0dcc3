import { connect, type Socket } from 'node:net';
import { answerJson, COMPLETION, hang } from '#testkit/fake-replica.ts';
import type { Scene } from '../scene.ts';
import { type Stage, toEntry } from '../stage.ts';

const FAILED = answerJson({ error: { message: 'out of memory' } }, { status: 500 });
const WRONG = answerJson({ error: { message: 'too long' } }, { status: 400 });
const WELL = answerJson(COMPLETION);

/** One replica, and a gateway before it. */
async function beforeOne(stage: Stage, config: object = {}, more: object = {}) {
  const a = await stage.replica('a');
  const gateway = await stage.gateway({ replicas: [{ ...toEntry(a), ...more }], ...config });
  return { a, gateway };
}

/** Opens connections of clients. */
async function openConnections(stage: Stage, url: string, count: number): Promise<{ close(): void }> {
  const { hostname, port } = new URL(url);
  const sockets: Socket[] = [];
  for (let opened = 0; opened < count; opened++) {
    const socket = connect(Number(port), hostname).on('error', () => undefined);
    sockets.push(socket);
    await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
  }
  const close = () => {
    for (const socket of sockets) socket.destroy();
  };
  stage.defer(close);
  return { close };
}

export const REQUEST_SCENES: readonly Scene[] = [
  {
    id: 'requests_failing',
    subject: '',
    isSlow: true,
    async play(stage) {
      const { a, gateway } = await beforeOne(stage);
      stage.traffic(gateway, 20);
      return { gateway, bring: () => a.answer(FAILED), mend: () => a.answer(WELL) };
    },
  },
  {
    id: 'client_errors_many',
    subject: '',
    isSlow: true,
    async play(stage) {
      const { a, gateway } = await beforeOne(stage);
      stage.traffic(gateway, 20);
      return { gateway, bring: () => a.answer(WRONG), mend: () => a.answer(WELL) };
    },
  },
  {
    id: 'overloaded',
    subject: '',
    isSlow: true,
    async play(stage) {
      const { a, gateway } = await beforeOne(stage, { limits: { queue: 2 } }, { max_inflight: 1 });
      const traffic = stage.traffic(gateway, 10);
      return {
        gateway,
        bring: () => a.answer(hang),
        mend() {
          traffic.stop();
          a.resetConnections();
        },
      };
    },
  },
  {
    id: 'waiting_long',
    subject: '',
    async play(stage) {
      const { a, gateway } = await beforeOne(stage, { limits: { queue: 10 } }, { max_inflight: 1 });
      a.answer(hang);
      const traffics: { stop(): void }[] = [];
      return {
        gateway,
        bring: () => void traffics.push(stage.traffic(gateway, 10)),
        mend() {
          for (const traffic of traffics) traffic.stop();
          a.resetConnections();
        },
      };
    },
  },
  {
    id: 'buffers_near_limit',
    subject: '',
    async play(stage) {
      const { gateway } = await beforeOne(stage, { limits: { body: '1MiB', buffered: '2MiB' } });
      const { hostname, port } = new URL(gateway.url);
      const head = 'POST /v1/chat/completions HTTP/1.1\r\nHost: lab\r\nContent-Length: 1000000\r\n\r\n';
      const sockets: Socket[] = [];
      const close = () => {
        for (const socket of sockets) socket.destroy();
      };
      stage.defer(close);
      return {
        gateway,
        // Bodies whose ends never come.
        bring() {
          for (let sent = 0; sent < 2; sent++) {
            const socket = connect(Number(port), hostname).on('error', () => undefined);
            sockets.push(socket);
            socket.write(`${head}{"model":"m","messages":[{"content":"${'x'.repeat(900_000)}`);
          }
        },
        mend: close,
      };
    },
  },
  {
    id: 'connections_near_limit',
    subject: '',
    async play(stage) {
      const { gateway } = await beforeOne(stage, { limits: { connections: 20 } });
      let opened: { close(): void } | undefined;
      return {
        gateway,
        bring: async () => {
          opened = await openConnections(stage, gateway.url, 18);
        },
        mend: () => opened?.close(),
      };
    },
  },
  {
    id: 'connections_full',
    subject: '',
    async play(stage) {
      const { gateway } = await beforeOne(stage, { limits: { connections: 20 } });
      let opened: { close(): void } | undefined;
      return {
        gateway,
        bring: async () => {
          opened = await openConnections(stage, gateway.url, 25);
        },
        mend: () => opened?.close(),
      };
    },
  },
];

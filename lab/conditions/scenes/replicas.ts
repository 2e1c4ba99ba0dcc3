import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAuthority } from '#testkit/certificates.ts';
import {
  answerJson,
  answerStream,
  COMPLETION,
  chatChunk,
  DONE,
  type FakeReplica,
  hang,
  partial,
  refusedUrlBeside,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { listen } from '#testkit/servers/local-server.ts';
import { callAdmin, reloadWith } from '../act.ts';
import type { Scene } from '../scene.ts';
import { type Stage, toEntry } from '../stage.ts';

const HEALTH = { passive: true, active: true, interval: '1s', cool_down: '2s' };
const LOADING = answerJson(
  { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
  { status: 503 },
);
/** A stream of some seconds whose events come every 50 ms. */
const CHUNKS = Array.from({ length: 40 }, () => chatChunk('word '));

/** Replicas `a` and `b`, and a gateway before them. `url`: that of `a` in the configuration. */
async function beforeTwo(
  stage: Stage,
  config: object = {},
  change: (a: ReturnType<typeof toEntry>) => object = (a) => a,
) {
  const [a, b] = [await stage.replica('a'), await stage.replica('b')];
  const gateway = await stage.gateway({ replicas: [change(toEntry(a)), toEntry(b)], ...config });
  return { a, b, gateway };
}

/** Lets a replica begin at the port that the configuration names. */
async function comeBack(stage: Stage, { url }: FakeReplica, options: object = {}): Promise<void> {
  const port = Number(new URL(url).port);
  stage.use(await startFakeReplica({ name: 'a', address: '127.0.0.9', port, ...options }));
}

/** A server that is no HTTP server. */
async function startSilentServer(stage: Stage): Promise<string> {
  const server = createServer((socket) => socket.on('error', () => undefined).end('220 mail ESMTP\r\n'));
  const port = await listen(server);
  stage.defer(() => server.close());
  return `http://127.0.0.9:${port}`;
}

export const REPLICA_SCENES: readonly Scene[] = [
  {
    id: 'replica_unreachable',
    subject: 'a',
    async play(stage) {
      const { a, gateway } = await beforeTwo(stage);
      stage.traffic(gateway, 5);
      const port = Number(new URL(a.url).port);
      return {
        gateway,
        bring: () => a.close(),
        mend: async () => void stage.use(await startFakeReplica({ name: 'a', port })),
      };
    },
  },
  {
    id: 'replica_loading',
    subject: 'a',
    async play(stage) {
      const { a, gateway } = await beforeTwo(stage, {}, (entry) => ({ ...entry, engine: 'llamacpp' }));
      stage.traffic(gateway, 5);
      return {
        gateway,
        bring() {
          a.answer(LOADING);
          a.answerProbes(LOADING);
        },
        mend() {
          a.answer(answerJson(COMPLETION));
          a.list({ models: ['m'] });
        },
      };
    },
  },
  {
    id: 'replica_tls_failed',
    subject: 'a',
    async play(stage) {
      const authority = stage.use(await createAuthority());
      const other = await authority.issueAuthority('other');
      const wrong = await other.issue('wrong', 'IP:127.0.0.1');
      const right = await authority.issue('right', 'IP:127.0.0.1');
      const a = await stage.replica('a', { tls: { cert: wrong.cert, key: wrong.key } });
      const port = Number(new URL(a.url).port);
      const entry = { ...toEntry(a), url: `https://127.0.0.1:${port}`, tls: { ca: authority.ca.certPath } };
      const gateway = await stage.gateway({ replicas: [entry, toEntry(await stage.replica('b'))] });
      stage.traffic(gateway, 5);
      return {
        gateway,
        async mend() {
          await a.close();
          stage.use(await startFakeReplica({ name: 'a', port, tls: { cert: right.cert, key: right.key } }));
        },
      };
    },
  },
  {
    id: 'replica_name_unresolved',
    subject: 'a',
    async play(stage) {
      const folder = await stage.folder('gateway');
      const [a, b] = [await stage.replica('a'), await stage.replica('b')];
      const wrong = { ...toEntry(a), url: 'http://nobody.invalid:8000' };
      const replicas = [wrong, toEntry(b)];
      const gateway = await stage.gateway({ replicas });
      stage.traffic(gateway, 5);
      return {
        gateway,
        mend: () =>
          reloadWith(gateway, folder, (config) => ({ ...config, replicas: [toEntry(a), toEntry(b)] })),
      };
    },
  },
  {
    id: 'replica_wrong_server',
    subject: 'a',
    async play(stage) {
      const folder = await stage.folder('gateway');
      const [a, b] = [await stage.replica('a'), await stage.replica('b')];
      const url = (await startSilentServer(stage)).replace('127.0.0.9', '127.0.0.1');
      const gateway = await stage.gateway({ replicas: [{ ...toEntry(a), url }, toEntry(b)] });
      stage.traffic(gateway, 5);
      return {
        gateway,
        mend: () =>
          reloadWith(gateway, folder, (config) => ({ ...config, replicas: [toEntry(a), toEntry(b)] })),
      };
    },
  },
  {
    id: 'replica_failing',
    subject: 'a',
    async play(stage) {
      const { a, gateway } = await beforeTwo(stage, { health: HEALTH });
      stage.traffic(gateway, 5);
      const port = Number(new URL(a.url).port);
      return {
        gateway,
        bring: () => a.close(),
        mend: async () => void stage.use(await startFakeReplica({ name: 'a', port })),
      };
    },
  },
  {
    id: 'replica_slower',
    subject: 'a',
    isSlow: true,
    async play(stage) {
      const { a, b, gateway } = await beforeTwo(stage, {
        health: { peers: { cool_down: '5s' } },
        rollout: { ramp: '0s' },
      });
      const answer = (ms: number) => async (exchange: Parameters<ReturnType<typeof answerJson>>[0]) => {
        await exchange.request.body;
        await new Promise((resolve) => setTimeout(resolve, ms * (0.8 + 0.4 * Math.random())));
        await answerJson(COMPLETION)(exchange);
      };
      a.answer(answer(50));
      b.answer(answer(50));
      stage.traffic(gateway, 100);
      return {
        gateway,
        // The condition begins when it is found: `npm run lab -- peers` shows how soon that is.
        async bring() {
          a.answer(answer(150));
          while (!gateway.log.some((line) => JSON.parse(line).judge === 'slow')) await sleep(100);
        },
        mend: () => a.answer(answer(50)),
      };
    },
  },
  {
    id: 'replica_frozen',
    subject: 'a',
    async play(stage) {
      const { a, gateway } = await beforeTwo(stage, {
        health: { frozen_after: '2s', cool_down: '1s' },
        timeouts: { first_byte: '4s' },
      });
      stage.traffic(gateway, 10);
      return { gateway, bring: () => a.answer(hang), mend: () => a.answer(answerJson(COMPLETION)) };
    },
  },
  {
    id: 'replica_streams_silent',
    subject: 'a',
    async play(stage) {
      const { a, b, gateway } = await beforeTwo(stage);
      const well = answerStream([...CHUNKS, DONE]);
      a.answer(well);
      b.answer(well);
      const traffic = stage.traffic(gateway, 10, { stream: true });
      return {
        gateway,
        bring: () => a.answer(partial('text/event-stream', [chatChunk('word ')], 'nothing')),
        mend() {
          traffic.stop();
          a.resetConnections();
          a.answer(well);
        },
      };
    },
  },
  {
    id: 'shadow_silent',
    subject: 's',
    isSlow: true,
    async play(stage) {
      const [a, s] = [await stage.replica('a'), await stage.replica('s')];
      const gateway = await stage.gateway({
        replicas: [toEntry(a), { ...toEntry(s), role: 'shadow' }],
        shadow: { requests: '100%', max_inflight: 2 },
      });
      stage.traffic(gateway, 20);
      return {
        gateway,
        bring: () => s.answer(hang),
        mend() {
          s.answer(answerJson(COMPLETION));
          s.resetConnections();
        },
      };
    },
  },
  {
    id: 'replica_backlog',
    subject: 'a',
    async play(stage) {
      const { a, gateway } = await beforeTwo(stage);
      const traffic = stage.traffic(gateway, 20);
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
    id: 'replica_attempts_failing',
    subject: 'a',
    isSlow: true,
    async play(stage) {
      const { a, gateway } = await beforeTwo(stage, { retry: { statuses: [503] } });
      stage.traffic(gateway, 20);
      const busy = answerJson({ error: { message: 'busy' } }, { status: 503 });
      return { gateway, bring: () => a.answer(busy), mend: () => a.answer(answerJson(COMPLETION)) };
    },
  },
  {
    id: 'replica_refuses_requests',
    subject: 'a',
    isSlow: true,
    async play(stage) {
      const { a, gateway } = await beforeTwo(stage);
      stage.traffic(gateway, 20);
      const unknown = answerJson({ error: { message: 'no such model' } }, { status: 404 });
      return { gateway, bring: () => a.answer(unknown), mend: () => a.answer(answerJson(COMPLETION)) };
    },
  },
  {
    id: 'model_unavailable',
    subject: 'm',
    async play(stage) {
      const a = await stage.replica('a');
      const gateway = await stage.gateway({ replicas: [toEntry(a)] });
      stage.traffic(gateway, 5);
      const port = Number(new URL(a.url).port);
      return {
        gateway,
        bring: () => a.close(),
        mend: async () => void stage.use(await startFakeReplica({ name: 'a', port })),
      };
    },
  },
  {
    id: 'model_on_last_replica',
    subject: 'm',
    async play(stage) {
      const { gateway } = await beforeTwo(stage);
      return {
        gateway,
        bring: () => callAdmin(gateway, '/admin/replicas/a/drain'),
        mend: () => callAdmin(gateway, '/admin/replicas/a/undrain'),
      };
    },
  },
  {
    id: 'health_checks_off',
    subject: '',
    async play(stage) {
      const a = await stage.replica('a');
      const gateway = await stage.gateway({
        replicas: [{ ...toEntry(a), url: refusedUrlBeside(a) }, toEntry(await stage.replica('b'))],
      });
      stage.traffic(gateway, 5);
      return { gateway, mend: () => comeBack(stage, a) };
    },
  },
];

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSearch } from '#testkit/canaries/canary.ts';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { answerStream, chatChunk, DONE, type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { AUDIENCE, makeKey, startIssuer } from '#testkit/servers/fake-issuer.ts';
import { noTraces, type Traces, type WatchedGateway, watchGateway } from './watched-gateway.ts';

/** Letters that no word has side by side: 8 of them are enough to know each text by. */
const TEXTS = {
  prompt: 'promptqzxwvkjpmtfgh',
  completion: 'answerwqzxkvjhmtpfg',
  key: 'clientkxqzvwjptmhgf',
  claim: 'claimsvzqxkwjtpmfhg',
} as const;

const BODY = JSON.stringify({
  model: 'm',
  stream: true,
  messages: [{ role: 'user', content: TEXTS.prompt }],
});

/** On SIGUSR2 throws an error that has the secrets in its message, its frames, its cause and its members. */
const toThrowing = (secrets: readonly string[]) => `
const text = ${JSON.stringify(secrets.map((secret) => [...secret]))}.map((each) => each.join('')).join(' ');
process.on('SIGUSR2', () => {
  const error = new TypeError(text + '\\n    at ' + text + ' (a.ts:1:1)', { cause: new Error(text) });
  throw Object.assign(error, { headers: { authorization: 'Bearer ' + text }, body: Buffer.from(text) });
});`;

/** On SIGUSR2 ends all workers at once, as a crash of V8 would. */
const KILLING = `
const workers = new Set();
const { isMainThread } = process.getBuiltinModule('worker_threads');
if (isMainThread) {
  process.on('worker', (worker) => workers.add(worker));
  process.on('SIGUSR2', () => { for (const worker of workers) void worker.terminate(); workers.clear(); });
}`;

interface Ending {
  readonly name: string;
  readonly workers: number;
  readonly preload: (secrets: readonly string[]) => string;
  /** What ends the requests in flight, and the gateway. */
  readonly end: (gateway: WatchedGateway) => Promise<unknown>;
  /** What the log or the crash line says of it. */
  readonly says: string;
}

const crash = async ({ child }: WatchedGateway) => child.kill('SIGUSR2');

const ENDINGS: readonly Ending[] = [
  {
    name: 'an uncaught error',
    workers: 1,
    preload: toThrowing,
    end: crash,
    says: '"msg":"uncaught exception"',
  },
  {
    name: 'an uncaught error beside workers',
    workers: 2,
    preload: toThrowing,
    end: crash,
    says: '"msg":"uncaught exception"',
  },
  {
    name: 'the death of the workers',
    workers: 2,
    preload: () => KILLING,
    says: '"msg":"worker ended"',
    async end({ child, untilLogged }) {
      child.kill('SIGUSR2');
      for (const worker of [1, 2]) await untilLogged(`"worker":${worker},"msg":"worker replaced"`);
      child.kill('SIGTERM');
    },
  },
  {
    name: 'a SIGTERM that cuts requests',
    workers: 1,
    preload: () => '',
    says: '"cutRequests":2',
    end: async ({ child }) => child.kill('SIGTERM'),
  },
];

test.for(ENDINGS)('$name leaves no token, key, prompt or completion anywhere', async (ending) => {
  const traces = noTraces();
  await using collector = await startFakeCollector();
  await using replica = await startFakeReplica();
  const issuerKey = await makeKey('k');
  await using issuer = await startIssuer(issuerKey);
  const token = await issuer.issue(issuerKey, { sub: TEXTS.claim, azp: 'a-client' });
  const [, payload = '', signature = ''] = token.split('.');
  const secrets = { ...TEXTS, token, payload, signature };
  const lines = `replicas: [{ name: a, url: "${replica.url}", models: [m], engine: openai }]
clients: [{ name: team, key_sha256: ${createHash('sha256').update(TEXTS.key).digest('hex')} }]
jwt: { issuer: "${issuer.issuer}", audience: ${AUDIENCE}, jwks: keys.json, tenant_claim: tenant, client_claim: azp }
export: { endpoint: "${collector.url}", interval: 10ms }
trace: { spans: attempts }
log: { level: trace, requests: true }
shutdown: { flush: 0s, grace: 0s }
`;
  const files = { 'keys.json': JSON.stringify({ keys: [issuerKey.jwk] }) };
  const preload = ending.preload(Object.values(secrets));
  const gateway = await watchGateway(lines, ending.workers, traces, files, preload);
  await serveAndCut(gateway, { collector, replica, token, end: ending.end });

  traces.files.push(await readSpool(gateway));
  expect([...traces.log, ...traces.stderr].join('\n')).toContain(ending.says);
  traces.exports.push(
    ...collector.calls.flatMap(({ headers, bytes, body }) => [
      JSON.stringify(headers),
      bytes.toString('latin1'),
      body,
    ]),
  );
  for (const where of ['exports', 'files', 'admin', 'metrics'] as const) {
    expect(traces[where].join('\n'), where).toContain('acme');
  }
  expect(findAll(traces, secrets)).toEqual([]);
});

/** Serves requests with the token, and with the key; then ends the gateway while one of each is half answered. */
async function serveAndCut(
  gateway: WatchedGateway,
  {
    collector,
    replica,
    token,
    end,
  }: { collector: FakeCollector; replica: FakeReplica; token: string; end: Ending['end'] },
): Promise<void> {
  const requests = [
    postBytes('/v1/chat/completions', BODY, [`Authorization: Bearer ${token}`, `x-api-key: ${TEXTS.key}`]),
    postBytes('/v1/chat/completions', BODY, [`x-api-key: ${TEXTS.key}`]),
  ];
  const wrong = postBytes('/v1/chat/completions', BODY, [`Authorization: Bearer ${token}x`]);
  const serveAll = async () => {
    replica.answer(answerStream([chatChunk(TEXTS.completion), DONE]));
    for (const bytes of [...requests, wrong]) {
      using client = await RawConnection.open(gateway.url);
      client.write(bytes);
      await client.readResponse();
    }
  };
  await serveAll();
  await collector.waitFor(
    ({ spans }) => spans.filter(({ name }) => name.startsWith('POST /v1/')).length >= 3,
  );
  await gateway.readAdmin();
  await collector.close();
  await serveAll();
  // The answer comes when the records of all workers have arrived: they are in the queue, and then in the spool.
  await gateway.callAdmin('/admin/stats');
  replica.answer(async ({ request, head, write }) => {
    await request.body;
    await head(200, ['Content-Type', 'text/event-stream']);
    await write(chatChunk(TEXTS.completion) + chatChunk(TEXTS.completion).slice(0, -9));
  });
  using stack = new DisposableStack();
  for (const bytes of requests) {
    const client = stack.use(await RawConnection.open(gateway.url));
    client.write(bytes);
    await client.untilBuffered(TEXTS.completion);
  }
  await end(gateway);
  await gateway.ended;
}

/** The spans in the spool of a gateway that has ended: their bytes as latin-1. */
async function readSpool({ stateDir }: WatchedGateway): Promise<string> {
  const directory = join(stateDir, 'spool');
  const texts = (await readdir(directory)).map((name) => readFile(join(directory, name), 'latin1'));
  const lines = (await Promise.all(texts)).join('\n').split('\n');
  return lines.map((line) => Buffer.from(line.split(' ')[1] ?? '', 'base64').toString('latin1')).join('\n');
}

/** Where each secret is, and in which form. */
function findAll(traces: Traces, secrets: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(secrets).flatMap(([name, secret]) => {
    const find = createSearch(secret);
    return Object.entries(traces).flatMap(([where, pieces]) =>
      find(pieces.join('\n')).map((what) => `${name} in ${where}: ${what}`),
    );
  });
}

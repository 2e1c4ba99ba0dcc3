import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CANARY, findCanary } from '#testkit/canaries/canary.ts';
import { ALL_PASSAGES, type SentPassage } from '#testkit/canaries/further-passages.ts';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { answerJson, COMPLETION, type FakeReplica, startFakeReplicas } from '#testkit/fake-replica.ts';
import { runMain } from '#testkit/processes/main-process.ts';
import { RawConnection } from '#testkit/raw-http.ts';
import { AUDIENCE, makeKey, startIssuer } from '#testkit/servers/fake-issuer.ts';
import { startRedisServer } from '#testkit/servers/redis-server.ts';
import { PERMITTED, permittedBytes, permittedScript } from './permitted.ts';
import { readRedis } from './process-traces.ts';
import { noTraces, type Traces, type WatchedGateway, watchGateway } from './watched-gateway.ts';

const ENDPOINTS = [
  ...['responses', 'messages', 'rerank', 'score', 'classify', 'pooling', 'tokenize', 'detokenize'],
  ...['audio/transcriptions', 'audio/translations'],
];

/** Everything that can be switched on and looks at requests. */
const toLines = (replicas: readonly FakeReplica[]) => `
replicas:
${replicas.map(({ name, url }) => `  - { name: ${name}, url: "${url}", models: [m], engine: openai }`).join('\n')}
endpoints: [${ENDPOINTS.join(', ')}]
pass: [POST /v1/files/*]
models_listing: union
aliases: { nickname: m }
retry: { statuses: [503] }
limits: { body: 16KiB }
log: { level: trace, requests: true }
shutdown: { flush: 0s, grace: 0s }
`;

test('text that passes is kept and shown nowhere; what may be recorded is where the documents say', async () => {
  const traces = noTraces();
  await passThroughFleet(traces);
  await passThroughFiles(traces);

  const found = Object.entries(traces).flatMap(([where, pieces]) => {
    expect(pieces.join(''), where).not.toBe('');
    return findCanary(pieces.join('\n')).map((what) => `${where}: ${what}`);
  });
  expect(found).toEqual([]);
  const permitted = Object.keys(PERMITTED).map((word) => [
    word,
    Object.entries(traces).flatMap(([where, pieces]) => (pieces.join('\n').includes(word) ? [where] : [])),
  ]);
  expect(Object.fromEntries(permitted)).toEqual(PERMITTED);
}, 300_000);

/** Two workers, tokens of an issuer, Redis, a collector, a ledger, all spans; a worker dies, a reload, then a crash. */
async function passThroughFleet(traces: Traces): Promise<void> {
  await using collector = await startFakeCollector();
  await using redis = await startRedisServer();
  await using replicas = await startFakeReplicas('a', 'b');
  const key = await makeKey('k');
  await using issuer = await startIssuer(key);
  const claims = { secret: CANARY, sub: CANARY, tenant: 'permitted-tenant', azp: 'permitted-client' };
  const token = await issuer.issue(key, claims);
  const lines = `${toLines(replicas)}
state: { redis: "${(await redis.openLink()).url}" }
jwt: { issuer: "${issuer.issuer}", audience: ${AUDIENCE}, jwks: keys.json, tenant_claim: tenant, client_claim: azp }
export: { endpoint: "${collector.url}", interval: 10ms, ledger: { interval: 50ms } }
trace: { incoming: continue, spans: attempts }
`;
  const gateway = await watchGateway(lines, 2, traces, { 'keys.json': JSON.stringify({ keys: [key.jwk] }) });
  const withToken = (passage: SentPassage): SentPassage => ({
    ...passage,
    bytes: authorize(passage.bytes, token),
  });
  await sendAll(gateway, replicas, withToken);
  await collector.waitFor(({ spans }) => spans.some(({ name }) => name === 'gateway.ledger'));
  traces.redis.push(await readRedis(redis));
  await gateway.collect();

  gateway.child.kill('SIGUSR2');
  await gateway.untilLogged('worker replaced');
  await gateway.writeConfig(
    (config) => `${config}\nheaders: { tenant: "${CANARY.slice(0, 3)} no header" }\n`,
  );
  await gateway.callAdmin('/admin/reload', { method: 'POST' });
  await gateway.writeConfig((config) => config.slice(0, config.indexOf('\nheaders:')));
  await gateway.callAdmin('/admin/reload', { method: 'POST' });
  await gateway.callAdmin('/admin/replicas/b/drain?reason=permitted-reason', { method: 'POST' });
  await collector.waitFor(({ spans }) => spans.some(({ name }) => name.includes('drain')));
  await collector.close();
  await sendAll(gateway, replicas, withToken);
  traces.redis.push(await readRedis(redis));
  await gateway.collect();
  gateway.child.kill('SIGUSR2');
  await gateway.ended;
  expect(await readdir(join(gateway.stateDir, 'spool'))).not.toEqual([]);
  traces.exports.push(
    ...collector.calls.flatMap(({ headers, bytes, body }) => [
      JSON.stringify(headers),
      bytes.toString('latin1'),
      body,
    ]),
  );
}

/** One thread, no keys, records in files; then it is killed, and commands read the files. */
async function passThroughFiles(traces: Traces): Promise<void> {
  await using replicas = await startFakeReplicas('a', 'b');
  const lines = `${toLines(replicas)}export: { to: file, interval: 10ms, ledger: { interval: 50ms } }\n`;
  const gateway = await watchGateway(lines, 1, traces);
  await sendAll(gateway, replicas, (passage) => passage);
  await gateway.collect();
  gateway.child.kill('SIGKILL');
  await gateway.ended;
  const records = join(gateway.stateDir, 'records.jsonl');
  for (const command of ['export-trace', 'export-trace --summary', 'verify --partial', 'verify --json']) {
    const { stdout, stderr } = await runMain([...command.split(' '), records]);
    traces.commands.push(stdout, stderr);
  }
}

/** Sends each passage on a connection of its own, then bytes that are no request. */
async function sendAll(
  { url }: WatchedGateway,
  replicas: readonly FakeReplica[],
  change: (passage: SentPassage) => SentPassage,
): Promise<void> {
  const permitted = { name: 'what may be recorded', bytes: permittedBytes(), script: permittedScript };
  for (const passage of [...ALL_PASSAGES, permitted].map(change)) {
    for (const replica of replicas) replica.answer(passage.script ?? answerJson(COMPLETION));
    using client = await RawConnection.open(url);
    const received = replicas.reduce((sum, { requests }) => sum + requests.length, 0);
    client.write(passage.bytes);
    const { leaves } = passage;
    if (leaves === 'forwarded') {
      await Promise.any(replicas.map((replica) => replica.untilRequests(replica.requests.length + 1)));
      expect(replicas.reduce((sum, { requests }) => sum + requests.length, 0)).toBe(received + 1);
    } else if (typeof leaves === 'object') await client.untilBuffered(leaves.at);
    if (leaves !== undefined) continue;
    await client.readResponse();
    client.write(`${CANARY} ${CANARY}\r\n${CANARY}\r\n\r\n`);
    await client.readToClose();
  }
}

/** Puts a token into a request that has no Authorization of its own. */
function authorize(bytes: Buffer, token: string): Buffer {
  const text = bytes.toString('latin1');
  if (/\r\nAuthorization:/i.test(text)) return bytes;
  return Buffer.from(text.replace('\r\nHost:', `\r\nAuthorization: Bearer ${token}\r\nHost:`), 'latin1');
}

describe('the search finds a text', () => {
  const form = (bytes: Buffer, encoding: BufferEncoding) => bytes.toString(encoding);
  const bytes = Buffer.from(CANARY);
  test.for([
    ['as it is', CANARY],
    ['cut after 8 characters', CANARY.slice(0, 8)],
    ['without its beginning', CANARY.slice(-8)],
    ['in JSON', JSON.stringify({ a: `"${CANARY}"` })],
    ['in hexadecimal digits', form(bytes, 'hex')],
    ['in base64url, behind another byte', form(Buffer.concat([Buffer.from('x'), bytes]), 'base64url')],
    ['as numbers', JSON.stringify({ bytes: [...bytes] })],
    ['percent-encoded', [...bytes].map((byte) => `%${byte.toString(16)}`).join('')],
    ['in UTF-16', form(Buffer.from(CANARY, 'utf16le'), 'latin1')],
  ] as const)('%s', ([, text]) => {
    expect(findCanary(`before ${text} behind`)).not.toEqual([]);
  });

  test('and nothing where there is none', () => expect(findCanary('x'.repeat(1000))).toEqual([]));
});

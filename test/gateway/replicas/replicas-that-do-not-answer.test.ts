import { describe, expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import {
  answerJson,
  answerRaw,
  type FakeReplica,
  hang,
  refusedUrlBeside,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { invoke } from '../../cli/invoke.ts';

const LOADING = answerJson(
  { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
  { status: 503 },
);
const PAGE = answerRaw(
  'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<!doctype html>',
);

/** A replica that is asked what it serves. */
const auto = (name: string, url: string) => ({ name, url, models: 'auto', engine: 'auto' }) as const;

/** Starts a replica that answers probes so. */
async function startProbed(script: Script): Promise<FakeReplica> {
  const replica = await startFakeReplica();
  onTestFinished(() => replica.close());
  replica.answerProbes(script);
  return replica;
}

const isAdvice = (condition: unknown, reason: unknown) =>
  condition === undefined && reason !== undefined && reason !== 'loading_model';

/** What the log says to change at a replica that does not answer. */
const adviceOf = (gateway: StartedGateway, name: string) =>
  gateway.logLines
    .map((line) => JSON.parse(line))
    .filter(({ condition, replica, reason }) => isAdvice(condition, reason) && replica === name)
    .map(({ msg }) => msg);

const cli = (gateway: StartedGateway, ...args: readonly string[]) =>
  invoke([...args, '--admin', gateway.adminUrl], { SVC_ADMIN_TOKEN: ADMIN_TOKEN });

test('what a new operator sees of each replica that does not answer, without a request', async () => {
  await using authority = await createAuthority();
  await using secure = await startFakeReplica({ tls: await authority.issue('replica') });
  await using good = await startFakeReplica();
  const [page, missing, loading, hanging] = await Promise.all(
    [PAGE, answerJson({}, { status: 404 }), LOADING, hang].map(startProbed),
  );
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slow = await startProbed(async (exchange) => {
    await released;
    await answerJson({ data: [{ id: 'm', owned_by: 'vllm' }] })(exchange);
  });
  await using gateway = await startGateway({
    replicas: [
      auto('good', `${good.url}/v1/`),
      auto('nobody', refusedUrlBeside(good)),
      auto('no-name', 'http://no-such-host.invalid:8000'),
      auto('https-to-http', good.url.replace('http:', 'https:')),
      auto('http-to-https', secure.url.replace('https:', 'http:')),
      auto('page', page?.url ?? ''),
      // Nothing needs to be asked of it.
      { name: 'missing', url: missing?.url ?? '' },
      auto('loading', loading?.url ?? ''),
      auto('hanging', hanging?.url ?? ''),
      auto('slow', slow.url),
    ],
  });
  const [, , , , , , , , , waiting] = await gateway.replicas();
  expect(waiting).toMatchObject({ name: 'slow', models: null, engine: 'unknown' });
  release();
  await gateway.untilReachability('slow', 'reachable');
  await Promise.all(
    ['missing', 'http-to-https', 'page', 'loading', 'hanging'].map((name) =>
      gateway.untilLogged(`"msg":"replica ${name}: `),
    ),
  );

  const replicas = await gateway.replicas();
  const known = replicas.map(({ name, reachability, reachability_reason, engine }) =>
    [name, reachability, reachability_reason, engine].join(' '),
  );
  expect(known).toEqual([
    'good reachable  openai',
    'nobody unreachable connection_refused unknown',
    'no-name unreachable name_not_resolved unknown',
    'https-to-http unreachable tls_failed unknown',
    expect.stringMatching(/^http-to-https unreachable (connection_reset|not_http) unknown$/),
    'page unreachable not_an_engine unknown',
    'missing unreachable not_an_engine openai',
    'loading loading loading_model unknown',
    'hanging unreachable no_answer unknown',
    'slow reachable  vllm',
  ]);
  for (const { reachability_since } of replicas) expect(reachability_since).toMatch(/Z$/);

  const address = (url: string) => url.replace(/^https?:\/\//, '');
  expect(adviceOf(gateway, 'good')).toEqual([]);
  expect(adviceOf(gateway, 'nobody')).toEqual([
    `replica nobody: nothing accepts connections at ${address(refusedUrlBeside(good))}: start the server, or correct its url`,
  ]);
  expect(adviceOf(gateway, 'no-name')).toEqual([
    'replica no-name: the host of no-such-host.invalid:8000 does not resolve: correct the host in its url',
  ]);
  expect(adviceOf(gateway, 'https-to-http')).toEqual([
    'replica https-to-http: https was answered with plain HTTP: write http:// in its url',
  ]);
  expect(adviceOf(gateway, 'http-to-https')).toEqual([
    'replica http-to-https: http was answered with TLS: write https:// in its url',
  ]);
  expect(adviceOf(gateway, 'page')).toEqual([
    'replica page: GET /v1/models got an answer that is not a list of models: correct its url if it is not that of an inference server',
  ]);
  expect(adviceOf(gateway, 'missing')).toEqual([
    'replica missing: GET /v1/models got status 404: correct its url if it is not that of an inference server',
  ]);
  expect(adviceOf(gateway, 'hanging')).toEqual([
    `replica hanging: ${address(hanging?.url ?? '')} accepts connections but does not answer: check the server and the port in its url`,
  ]);
  expect(adviceOf(gateway, 'loading')).toEqual([]);

  const words = [
    'serving',
    ...['unreachable \\d+s \\(connection refused\\)', 'unreachable \\d+s \\(name does not resolve\\)'],
    ...['unreachable \\d+s \\(TLS failed\\)', 'unreachable \\d+s \\((connection reset|not HTTP)\\)'],
    'unreachable \\d+s \\(not an inference server\\)',
    'unreachable \\d+s \\(not an inference server\\)',
    ...['loading \\d+s', 'unreachable \\d+s \\(no answer in time\\)', 'serving'],
  ];
  for (const args of [['replicas'], ['top', '--once']]) {
    const { stdout } = await cli(gateway, ...args);
    replicas.forEach(({ name }, index) => {
      expect(stdout).toMatch(new RegExp(`^${name} +${words[index]}  `, 'm'));
    });
  }
});

describe('a replica that comes and goes', () => {
  test('is found without a request, is logged once, and is unknown while it is drained', async () => {
    await using first = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [auto('a', refusedUrlBeside(first)), auto('b', first.url)],
      config: { discovery: { models_interval: '100ms' } },
    });
    const down = await gateway.untilReachability('a', 'unreachable');
    expect(down.reachability_reason).toBe('connection_refused');

    await using second = await startFakeReplica({
      address: '127.0.0.9',
      port: Number(new URL(first.url).port),
    });
    const up = await gateway.untilReachability('a', 'reachable');
    expect(up.reachability_reason).toBeNull();
    expect(Date.parse(up.reachability_since ?? '')).toBeGreaterThanOrEqual(
      Date.parse(down.reachability_since ?? ''),
    );
    await gateway.untilLogged('replica a: it answers now');
    expect(adviceOf(gateway, 'a')).toHaveLength(1);

    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
    expect(await gateway.untilReachability('a', 'unknown')).toMatchObject({
      reachability_since: null,
      reachability_reason: null,
    });
    await gateway.admin('/admin/replicas/a/undrain', { method: 'POST' });
    await gateway.untilReachability('a', 'reachable');

    await second.close();
    await gateway.untilReachability('a', 'unreachable');
    expect(first.requests).toHaveLength(0);
    expect(second.requests).toHaveLength(0);
  });

  test('lists its model already while it loads it, as llama.cpp does: it is loading until its health path says otherwise', async () => {
    await using replica = await startFakeReplica({ list: { models: ['m'], ownedBy: 'llamacpp' } });
    const list = answerJson({ data: [{ id: 'm', owned_by: 'llamacpp' }] });
    let health: Script = LOADING;
    replica.answerProbes((exchange) => (exchange.request.url === '/health' ? health : list)(exchange));
    await using gateway = await startGateway({
      replicas: [auto('a', replica.url)],
      config: { discovery: { models_interval: '100ms' } },
    });
    expect(await gateway.untilReachability('a', 'loading')).toMatchObject({
      engine: 'llamacpp',
      models: ['m'],
    });
    health = answerJson({ status: 'ok' });
    await gateway.untilReachability('a', 'reachable');
  });

  test('has no model list, but is healthy and its models are configured: it is reachable', async () => {
    await using replica = await startFakeReplica();
    replica.answerProbes((exchange) =>
      answerJson({}, { status: exchange.request.url === '/health' ? 200 : 404 })(exchange),
    );
    await using gateway = await startGateway({ replicas: [replica] });
    await gateway.untilReachability('a', 'reachable');
    expect(adviceOf(gateway, 'a')).toEqual([]);
  });

  test('is no inference server for a probe, until it has served a request', async () => {
    await using replica = await startFakeReplica({ list: null });
    await using gateway = await startGateway({ replicas: [replica] });
    await gateway.untilReachability('a', 'unreachable');
    replica.answerOnce(answerJson({}, { status: 404 }));
    expect((await gateway.chat()).status).toBe(404);
    await gateway.admin('/admin/replicas/a');
    expect((await gateway.replicas())[0]).toMatchObject({ reachability_reason: 'not_an_engine' });
    expect((await gateway.chat()).status).toBe(200);
    expect((await gateway.replicas())[0]).toMatchObject({ reachability: 'reachable' });
  });
});

describe('a model that nobody is known to serve', () => {
  test('is a 404 if the only other replica never answered, and the record names the attempt', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [auto('a', replica.url), auto('b', refusedUrlBeside(replica))],
    });
    const response = await gateway.chat({ model: 'mistyped' });
    expect([response.status, await response.json()]).toMatchObject([
      404,
      { error: { code: 'model_not_found', param: 'model' } },
    ]);
    expect(await gateway.nextRecord()).toMatchObject({
      status: 404,
      error_type: 'model_not_found',
      model: 'mistyped',
      attempts: 1,
    });
  });

  test('is a 502 if no replica has listed its models, or if the one asked has answered before', async () => {
    await using replica = await startFakeReplica({ list: null });
    await using other = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [auto('a', replica.url)] });
    await gateway.untilReachability('a', 'unreachable');
    await replica.close();
    expect((await gateway.chat({ model: 'mistyped' })).status).toBe(502);

    gateway.writeConfig({ replicas: [auto('a', replica.url), auto('b', other.url)] });
    await gateway.reload();
    expect((await gateway.chat({ model: 'mistyped' })).status).toBe(502);
  });
});

describe('a url with /v1 at its end', () => {
  test('means the same as without, after another path too', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [
        { name: 'a', url: `${replica.url}/v1` },
        { name: 'b', url: `${replica.url}/proxy/v1/` },
      ],
    });
    for (let request = 0; request < 2; request++) expect((await gateway.chat()).status).toBe(200);
    expect(replica.requests.map(({ url }) => url).toSorted()).toEqual([
      '/proxy/v1/chat/completions',
      '/v1/chat/completions',
    ]);
    expect((await gateway.replicas()).map(({ url }) => url)).toEqual([replica.url, `${replica.url}/proxy`]);
  });
});

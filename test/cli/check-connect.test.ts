import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { startFakeApiServer } from '#testkit/servers/fake-api-server.ts';
import { makeKey, startIssuer } from '#testkit/servers/fake-issuer.ts';
import { invoke } from './invoke.ts';

interface CheckJson {
  readonly kind: string;
  readonly name: string;
  readonly target: string;
  readonly ok: boolean;
  readonly result: string;
  readonly advice: string | null;
  readonly duration_ms: number;
  readonly engine?: string;
  readonly models?: readonly string[];
}

async function writeConfig(lines: string): Promise<string> {
  const directory = await temporaryFolder();
  const path = join(directory, 'gateway.yaml');
  await writeFile(path, lines);
  return path;
}

/** Runs `check --connect` for replicas, with records in files unless the lines say otherwise. */
async function check(
  replicas: readonly string[],
  lines = 'export: { to: file }\n',
  options: readonly string[] = [],
) {
  const path = await writeConfig(`replicas:\n${replicas.map((each) => `- { ${each} }\n`).join('')}${lines}`);
  return await invoke(['check', '--connect', '-config', path, ...options], { KEY: 'sk-secret' });
}

async function checksOf(replicas: readonly string[], lines?: string): Promise<readonly CheckJson[]> {
  const { stdout, exitCode } = await check(replicas, lines, ['--json']);
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: CheckJson[] };
  expect([ok, exitCode]).toEqual(checks.every((each) => each.ok) ? [true, 0] : [false, 1]);
  return checks;
}

/** A server on which nobody answers HTTP; `onConnection` decides what happens. */
async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A server that answers PING, and each other command with OK or with an error. */
function startRedis(error?: string): Promise<number> {
  return listen(
    createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => {
        for (const command of bytes.toString().matchAll(/^\*\d+\r\n\$\d+\r\n(\w+)/gm)) {
          const reply = command[1] === 'PING' ? '+PONG' : '+OK';
          socket.write(`${error === undefined ? reply : `-${error}`}\r\n`);
        }
      });
    }),
  );
}

describe('gateway check --connect', () => {
  it('reads the keys of tokens, and says what is wrong with them', async () => {
    await using replica = await startFakeReplica();
    await using issuer = await startIssuer(await makeKey('k1'));
    const lines = `export: { to: file }\njwt: { issuer: i, audience: a, tenant_claim: t, jwks: "${issuer.jwksUrl}?policy=secret" }\n`;
    const own = { kind: 'jwks', name: 'jwt.jwks', target: issuer.jwksUrl };
    const good = await checksOf([`name: a, url: "${replica.url}"`], lines);
    expect(good.at(-1)).toMatchObject({ ...own, ok: true, result: 'ok, 1 key', advice: null });
    issuer.answerWith((response) => response.writeHead(404).end());
    const bad = await checksOf([`name: a, url: "${replica.url}"`], lines);
    expect(bad.at(-1)).toMatchObject({ ...own, ok: false, result: 'status 404' });
    expect(bad.at(-1)?.advice).toContain('jwks_uri');
  });

  it('says what to do if the server of keys, or Redis, cannot be reached or trusted', async () => {
    await using authority = await createAuthority();
    const { cert, key } = await authority.issue('server');
    const foreign = await listen(createTlsServer({ cert, key }));
    const gone = createServer();
    const closed = await listen(gone);
    gone.close();
    for (const [host, result, advice] of [
      [`127.0.0.1:${closed}`, 'connection refused', 'start it'],
      [`host.invalid:${closed}`, 'name does not resolve', 'correct the host'],
      [`127.0.0.1:${foreign}`, 'TLS failed', 'NODE_EXTRA_CA_CERTS'],
    ] as const) {
      const jwt = `jwt: { issuer: i, audience: a, tenant_claim: t, jwks: "https://${host}/keys" }`;
      const lines = `export: { to: file }\n${jwt}\nstate: { redis: "rediss://${host}" }\n`;
      const [, redis, jwks] = await checksOf(['name: a, url: "http://127.0.0.1:9"'], lines);
      expect([redis, jwks]).toMatchObject([
        { kind: 'redis', ok: false, result, advice: expect.stringContaining(advice) },
        { kind: 'jwks', ok: false, result, advice: expect.stringContaining(advice) },
      ]);
    }
  });

  it('ends with 0 when everything answers, and prints a table without credentials', async () => {
    await using replica = await startFakeReplica({ list: { models: ['m1', 'm2'], ownedBy: 'vllm' } });
    await using collector = await startFakeCollector();
    const redisPort = await startRedis();
    const { exitCode, stdout, stderr } = await check(
      [`name: a, url: "${replica.url}/v1", api_key: "\${KEY}"`],
      `health: {}\nexport: { endpoint: "${collector.url}/v1/traces" }\nstate: { redis: "redis://u:hunter2@127.0.0.1:${redisPort}/1" }\n`,
    );
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).not.toMatch(/hunter2|sk-secret/);
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/));
    const time = expect.stringMatching(/^\d+ ms$/);
    expect(rows).toEqual([
      ['NAME', 'TARGET', 'RESULT', 'TIME', 'WHAT TO CHANGE'],
      ['a', replica.url, 'ok, vllm: m1, m2', time, '-'],
      ['collector', `${collector.url}/v1/traces`, 'ok', time, '-'],
      ['redis', `redis://127.0.0.1:${redisPort}/1`, 'ok', time, '-'],
    ]);
    expect(collector.calls.map(({ path, spans }) => [path, spans])).toEqual([['/v1/traces', []]]);
  });

  it('reads the list of pods and tries each, and says why there is none', async () => {
    await using replica = await startFakeReplica({ list: { models: ['m1'], ownedBy: 'vllm' } });
    await using api = await startFakeApiServer();
    const entry = `name: vllm, kubernetes: { service: vllm, namespace: llm, api_server: "${api.url}" }`;
    const target = `${api.url}, Service vllm`;
    const none = { name: 'vllm', ok: false, target, result: 'no_pods' };
    expect(await checksOf([entry])).toMatchObject([
      { ...none, advice: expect.stringContaining('no EndpointSlices') },
    ]);
    const ports = [{ port: Number(new URL(replica.url).port) }];
    const pod = { name: 'vllm-0', address: '127.0.0.1' };
    api.put({ name: 's', ports, pods: [{ ...pod, ready: false }] });
    expect(await checksOf([entry])).toMatchObject([
      { ...none, advice: expect.stringContaining('none of its pods') },
    ]);
    api.put({ name: 's', ports, pods: [pod] });
    expect(await checksOf([entry])).toMatchObject([{ name: 'vllm-0', ok: true, target: replica.url }]);
    api.answer('list', (response) => response.writeHead(403).end());
    expect(await checksOf([entry])).toMatchObject([
      { ...none, result: 'refused (status 403)', advice: expect.stringContaining('give it the Role') },
    ]);
  });

  it('sends a replica one GET /v1/models with its key and nothing else', async () => {
    const heads: string[] = [];
    const port = await listen(
      createServer((socket) => {
        socket.once('data', (bytes) => {
          heads.push(bytes.toString());
          socket.end('HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"data":[]}');
        });
      }),
    );
    await check([`name: a, url: "http://127.0.0.1:${port}/team", api_key: "\${KEY}"`]);
    expect(heads).toEqual([expect.stringMatching(/^GET \/team\/v1\/models HTTP\/1\.1\r\n/)]);
    expect(heads[0]).toContain('Bearer sk-secret');
  });

  it('says of each replica why it cannot be used, and what to change', async () => {
    await using engine = await startFakeReplica({ list: { models: ['m1'] } });
    const answer = (head: string) =>
      listen(
        createServer((socket) => {
          socket.on('error', () => undefined);
          socket.once('data', () => socket.end(`HTTP/1.1 ${head}\r\nContent-Length: 2\r\n\r\n{}`));
        }),
      );
    const other = await answer('200 OK');
    const wantsKey = await answer('401 Unauthorized');
    const broken = await answer('500 Oops');
    const ssh = await listen(
      createServer((socket) => socket.once('data', () => socket.write('SSH-2.0-OpenSSH_9.6\r\n'))),
    );
    const local = 'http://127.0.0.1';
    const checks = await checksOf([
      `name: listed, url: "${engine.url}", models: [m1]`,
      `name: missing, url: "${engine.url}/x", models: [m1, m9]`,
      `name: tls, url: "${engine.url.replace('http:', 'https:')}"`,
      `name: other, url: "${local}:${other}"`,
      `name: embeddings, url: "${local}:${other}/e", models: [e]`,
      `name: key, url: "${local}:${wantsKey}"`,
      `name: wrong-key, url: "${local}:${wantsKey}/k", api_key: "\${KEY}"`,
      `name: pass-through, url: "${local}:${wantsKey}/p", models: [m]`,
      `name: broken, url: "${local}:${broken}"`,
      `name: ssh, url: "${local}:${ssh}"`,
      `name: refused, url: "${local}:9"`,
      'name: no-name, url: "http://replica.invalid"',
      'name: no-service, dns: "http://service.invalid:8000"',
    ]);
    expect(checks.map(({ name, ok, result }) => [name, ok, result])).toEqual([
      ['listed', true, 'ok'],
      ['missing', true, 'ok'],
      ['tls', false, 'tls_failed'],
      ['other', false, 'not_an_engine'],
      ['embeddings', true, 'answers, without a list of models'],
      ['key', false, 'status 401'],
      ['wrong-key', false, 'status 401'],
      ['pass-through', true, 'status 401'],
      ['broken', false, 'engine_failed'],
      ['ssh', false, 'not_http'],
      ['refused', false, 'connection_refused'],
      ['no-name', false, 'name_not_resolved'],
      ['no-service', false, 'name_not_resolved'],
    ]);
    const adviceOf = (wanted: string) => checks.find(({ name }) => name === wanted)?.advice;
    expect(adviceOf('listed')).toBeNull();
    expect(adviceOf('missing')).toContain('it does not list m9');
    expect(adviceOf('tls')).toContain('write http:// in its url');
    expect(adviceOf('key')).toContain('set api_key');
    expect(adviceOf('wrong-key')).toContain('correct api_key');
    expect(adviceOf('refused')).toContain('start the server, or correct its url');
    expect(adviceOf('no-service')).toContain('no addresses');
  });

  it.each([
    [404, 'correct the host, port or path of export.endpoint'],
    [401, 'OTEL_EXPORTER_OTLP_HEADERS'],
    [415, 'OTEL_EXPORTER_OTLP_PROTOCOL'],
  ])('says what to do about a collector that answers %i', async (status, advice) => {
    await using replica = await startFakeReplica();
    await using collector = await startFakeCollector();
    collector.answerAlways({ status });
    const [, check] = await checksOf(
      [`name: a, url: "${replica.url}"`],
      `export: { endpoint: "${collector.url}" }\n`,
    );
    expect(check).toMatchObject({
      kind: 'collector',
      name: 'export.endpoint',
      target: `${collector.url}/v1/traces`,
      ok: false,
      result: `status ${status}`,
      advice: expect.stringContaining(advice),
    });
  });

  it('says what to do about a Redis server', async () => {
    const wrong = await startRedis('WRONGPASS invalid username-password pair or user is disabled.');
    const noPing = await startRedis("NOPERM User x has no permissions to run the 'ping' command");
    for (const [port, password, ok, result, advice] of [
      [wrong, 'u:hunter2@', false, 'wrong password', 'redis://user:password@host'],
      [noPing, '', true, 'ok', null],
      [9, '', false, 'connection refused', 'start it'],
    ] as const) {
      const [, check] = await checksOf(
        ['name: a, url: "http://127.0.0.1:9"'],
        `export: { to: file }\nstate: { redis: "redis://${password}127.0.0.1:${port}" }\n`,
      );
      expect(check).toMatchObject({ kind: 'redis', ok, result });
      if (advice !== null) expect(check?.advice).toContain(advice);
      expect(JSON.stringify(check)).not.toContain('hunter2');
    }
  });

  it('says when health checks are off, also as JSON, and that changes no exit code', async () => {
    await using replica = await startFakeReplica({ list: { models: ['m'] } });
    const noticesOf = async (lines: string) => {
      const found = await check([`name: a, url: "${replica.url}"`], `export: { to: file }\n${lines}`, [
        '--json',
      ]);
      expect(found.exitCode).toBe(0);
      return { stderr: found.stderr, ...JSON.parse(found.stdout) };
    };
    expect(await noticesOf('health: {}\n')).toMatchObject({ ok: true, stderr: '', notices: [] });
    expect(await noticesOf('')).toMatchObject({
      ok: true,
      stderr: expect.stringMatching(/^gateway: notice: health checks are off: .* "health: \{\}"\n$/),
      notices: [{ id: 'health_checks_off', text: expect.stringContaining('are off'), line: 'health: {}' }],
    });
  });

  it('refuses a wrong file as without --connect, and --json without it', async () => {
    const path = await writeConfig('replicas: []\n');
    expect(await invoke(['check', '--connect', '-config', path])).toMatchObject({ exitCode: 2, stdout: '' });
    expect(await invoke(['check', '--json', '-config', path])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("option '--json' needs '--connect'"),
    });
  });

  it('takes a web server for a replica no more than the running gateway does', async () => {
    const answer = (text: string) =>
      listen(
        createServer((socket) => {
          socket.on('error', () => undefined);
          socket.once('data', () =>
            socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`),
          );
        }),
      );
    const [page, embeddings] = [await answer('<html></html>'), await answer('ok')];
    const checks = await checksOf([
      `name: page, url: "http://127.0.0.1:${page}", models: [m]`,
      `name: embeddings, url: "http://127.0.0.1:${embeddings}", models: [m]`,
    ]);
    expect(checks.map(({ name, ok, result }) => [name, ok, result])).toEqual([
      ['page', false, 'not_an_engine'],
      ['embeddings', true, 'answers, without a list of models'],
    ]);
  });
});

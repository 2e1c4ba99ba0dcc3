import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createStatementKey } from '#statement';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import {
  answerStream,
  chatChunk,
  DONE,
  type FakeReplica,
  hang,
  startFakeReplica,
  startFakeReplicas,
} from '#testkit/fake-replica.ts';
import { createStreamGate } from '#testkit/gates.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { makeKey } from '#testkit/servers/fake-issuer.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';

interface ReloadAnswer {
  readonly changed: readonly string[];
  readonly needs_restart: readonly string[];
  readonly replicas: Readonly<Record<'added' | 'changed' | 'removed', readonly string[]>>;
}

async function reload(gateway: StartedGateway): Promise<ReloadAnswer> {
  const response = await gateway.reload();
  expect(response.status).toBe(200);
  return (await response.json()) as ReloadAnswer;
}

const drain = async (gateway: StartedGateway, name: string) => {
  expect((await gateway.admin(`/admin/replicas/${name}/drain`, { method: 'POST' })).status).toBe(200);
};

/** A stream that has begun and ends when it is told to. */
const createStream = () => createStreamGate([chatChunk('Hello')], chatChunk('', 'stop') + DONE);

describe.each([1, 2])('replicas, with %d workers', (workers) => {
  // Idle connections are not closed for being idle, as far as these tests can see.
  const config = { gateway: { workers }, timeouts: { upstream_keep_alive: '1h' } };

  test('come, change and go, and the answer says which', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c', 'd');
    const [a, b, c, d] = replicas;
    await using gateway = await startGateway({ replicas: [a, b], config });
    expect(await turnsOf(gateway, 2)).toEqual(['a', 'b']);
    gateway.writeConfig({ replicas: [c, { name: 'b', url: d.url, gpu_count: 8 }] });
    expect(await reload(gateway)).toEqual({
      changed: ['replicas'],
      needs_restart: [],
      replicas: { added: ['c'], changed: ['b'], removed: ['a'] },
    });
    expect(new Set(await turnsOf(gateway, 4))).toEqual(new Set(['c', 'b']));
    expect([a, b, c, d].map(({ requests }) => requests.length)).toEqual([1, 1, 2, 2]);
    expect(await gateway.replicas()).toMatchObject([
      { name: 'c', url: c.url },
      { name: 'b', url: d.url, gpu_count: 8 },
    ]);
  });

  test('that are removed finish their streams, are shown until they have, and then lose their connections', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [a, b], config });
    const stream = createStream();
    a.answerOnce(stream.script);
    const response = await gateway.chat({ stream: true });
    gateway.writeConfig({ replicas: [b] });
    await reload(gateway);
    expect(await gateway.replicas()).toMatchObject([
      { name: 'b', removing: false },
      { name: 'a', removing: true, drained: true, inflight: 1, safe_to_stop: false },
    ]);
    // What stops the server of a replica may ask for its drain after it has left the list.
    const drained = await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
    expect(await drained.json()).toMatchObject({
      replica: { removing: true, inflight: 1, safe_to_stop: false },
    });
    stream.open();
    expect(await response.text()).toContain(DONE);
    await a.untilOpenConnections(0);
    expect(await gateway.replicas()).toMatchObject([{ name: 'b' }]);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200, replica: 'a' });
  });

  test('keep their drains by name, through another url and a time without them', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c');
    const [a, b, c] = replicas;
    await using gateway = await startGateway({ replicas: [a, b], config });
    await drain(gateway, 'a');
    for (const list of [[{ name: 'a', url: c.url }, b], [b], [a, b]]) {
      gateway.writeConfig({ replicas: list });
      await reload(gateway);
      expect(await turnsOf(gateway, 2)).toEqual(['b', 'b']);
    }
    expect(await gateway.replicas()).toMatchObject([{ name: 'a', drained: true }, { name: 'b' }]);
  });

  test('come and go under streams without one request failing, and none reaches one that is gone', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c');
    const chunks = ['Hello', ' world', '.'].map((text) => chatChunk(text));
    for (const replica of replicas) replica.answer(answerStream([...chunks, chatChunk('', 'stop'), DONE]));
    await using gateway = await startGateway({ replicas, config });
    let begun = 0;
    // Clients send until it is disposed of, also by an assertion that fails: the gateway waits for them.
    using load = new DisposableStack();
    const failures: unknown[] = [];
    const client = async () => {
      while (!load.disposed) {
        const headers = { 'X-Number': String(begun++) };
        const response = await gateway.chat({ stream: true }, { headers });
        const text = await response.text();
        if (response.status !== 200 || !text.endsWith(DONE)) failures.push([response.status, text]);
      }
    };
    const clients = Array.from({ length: 16 }, client);
    const numbersAt = ({ requests }: FakeReplica) =>
      requests.map((request) => Number(request.header('x-number')[0]));

    for (const gone of [...replicas, ...replicas]) {
      await gone.untilRequests(gone.requests.length + 8);
      const others = replicas.filter((replica) => replica !== gone);
      // The name of one moves to the server of the other, and back with the next round.
      gateway.writeConfig({ replicas: [{ name: 'moved', url: others[0]?.url ?? '' }, ...others.slice(1)] });
      expect((await reload(gateway)).replicas.removed).toContain(gone.name);
      const firstAfter = begun;
      await Promise.all(others.map((other) => other.untilRequests(other.requests.length + 16)));
      expect(numbersAt(gone).filter((number) => number >= firstAfter)).toEqual([]);
      gateway.writeConfig({ replicas });
      await reload(gateway);
    }

    load.dispose();
    await Promise.all(clients);
    expect(failures).toEqual([]);
    expect(gateway.records.every(({ status, truncated }) => status === 200 && truncated === undefined)).toBe(
      true,
    );
  });
});

test('is answered when each worker knows the replicas, also one that is busy', async () => {
  using watched = watchWorkerThreads();
  await using replicas = await startFakeReplicas('a', 'b');
  const [gone, left] = replicas;
  await using gateway = await startGateway({ replicas: [...replicas], config: { gateway: { workers: 2 } } });
  gateway.writeConfig({ replicas: [left] });
  const [beganMs, busyMs] = [performance.now(), 1_500];
  await watched.block(1, busyMs);
  expect((await reload(gateway)).replicas.removed).toEqual(['a']);
  expect(performance.now() - beganMs).toBeGreaterThanOrEqual(busyMs);
  await Promise.all(Array.from({ length: 16 }, async () => await (await gateway.chat()).text()));
  expect([gone, left].map(({ requests }) => requests.length)).toEqual([0, 16]);
});

test('a replica that takes the name of another finishes both their requests, and shows both', async () => {
  await using old = await startFakeReplica({ name: 'a' });
  await using next = await startFakeReplica({ name: 'a' });
  await using gateway = await startGateway({ replicas: [old] });
  const stream = createStream();
  old.answerOnce(stream.script);
  const response = await gateway.chat({ stream: true });
  gateway.writeConfig({ replicas: [next] });
  await reload(gateway);
  expect((await gateway.chat()).status).toBe(200);
  expect(next.requests).toHaveLength(1);
  expect(await gateway.replicas()).toMatchObject([
    { name: 'a', url: next.url, removing: false, drained: false },
    { name: 'a', url: old.url, removing: true, drained: true, inflight: 1 },
  ]);
  stream.open();
  expect(await response.text()).toContain(DONE);
});

test('a new replica serves nothing before it was asked what it serves', async () => {
  await using a = await startFakeReplica({ name: 'a', list: { models: ['m'] } });
  await using b = await startFakeReplica({ name: 'b', list: { models: ['x'] } });
  const toAuto = ({ name, url }: FakeReplica) => ({ name, url, models: 'auto' as const });
  await using gateway = await startGateway({ replicas: [toAuto(a)] });
  gateway.writeConfig({ replicas: [toAuto(a), toAuto(b)] });
  await reload(gateway);
  expect((await gateway.replicas()).map(({ models }) => models)).toEqual([['m'], ['x']]);
  expect((await gateway.chat({ model: 'x' })).status).toBe(200);
});

describe('a file with mistakes', () => {
  const SECRET = 'sk-very-secret';

  test('changes nothing, and the answer and the log tell all of them without a secret', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a] });
    gateway.writeConfig(
      `replicas:\n- { name: b, url: "http://user:${SECRET}@b" }\n- { name: c, url: "http://c", api_key: "${SECRET}\\n" }\ntimeoutz: {}\n`,
    );
    const response = await gateway.reload();
    expect(response.status).toBe(422);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect(error).toMatchObject({ code: 'invalid_config', type: 'invalid_request_error' });
    expect(error.message.split('\n').map((line) => line.split(',')[0])).toEqual([
      'line 2: replicas[0].url: found "http://***@b"',
      'line 3: replicas[1].api_key: found ***',
      'line 4: timeoutz: unknown key; did you mean timeouts?',
    ]);
    const line = gateway.logLines.find((each) => each.includes('configuration refused'));
    expect(JSON.parse(line ?? '')).toMatchObject({ problems: error.message.split('\n') });
    expect(gateway.logLines.join('')).not.toContain(SECRET);
    expect(await turnsOf(gateway, 1)).toEqual(['a']);
    expect(await gateway.replicas()).toMatchObject([{ name: 'a' }]);
  });

  test('is forgotten with the next one without', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [a] });
    gateway.writeConfig('replicas: []');
    expect((await gateway.reload()).status).toBe(422);
    gateway.writeConfig({ replicas: [b] });
    expect((await reload(gateway)).replicas).toEqual({ added: ['b'], changed: [], removed: ['a'] });
  });
});

describe('settings', () => {
  test('that can change between two requests are in force with the answer', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a], config: { limits: { body: '1MiB' } } });
    const long = { messages: [{ role: 'user', content: 'x'.repeat(100_000) }] };
    expect((await gateway.chat(long)).status).toBe(200);
    gateway.writeConfig({
      config: {
        limits: { body: '10KiB' },
        headers: { tenant: 'X-Team' },
        timeouts: { first_byte: '50ms', connect: '1s' },
        log: { level: 'warn', requests: true },
      },
    });
    expect(await reload(gateway)).toMatchObject({
      changed: [
        'headers.tenant',
        'timeouts.connect',
        'timeouts.first_byte',
        'limits.body',
        'log.level',
        'log.requests',
      ],
      needs_restart: [],
      replicas: { added: [], changed: [], removed: [] },
    });
    expect((await gateway.chat(long)).status).toBe(413);
    await gateway.chat({}, { headers: { 'X-Team': 'red' } });
    const records = await gateway.waitForRecords(3);
    expect(records.at(-1)?.tenant).toBe('red');
    a.answerOnce(hang);
    expect((await gateway.chat()).status).toBe(504);
  });

  test('leave requests in flight as they are', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a] });
    const stream = createStream();
    a.answerOnce(stream.script);
    const response = await gateway.chat({ stream: true });
    gateway.writeConfig({ config: { timeouts: { idle: '10ms', connect: '1s' } } });
    await reload(gateway);
    expect((await gateway.chat()).status).toBe(200);
    stream.open();
    expect(await response.text()).toContain(DONE);
  });

  test('that need a restart are named, and everything else is applied', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [a] });
    gateway.writeConfig({
      replicas: [a, b],
      config: { gateway: { listen: '127.0.0.1:1' }, prefix_hash: { block_chars: 16 } },
    });
    const expected = { needs_restart: ['gateway.listen', 'prefix_hash.block_chars'], changed: ['replicas'] };
    expect(await reload(gateway)).toMatchObject(expected);
    expect(await turnsOf(gateway, 2)).toEqual(['a', 'b']);
    expect(JSON.parse(await gateway.untilLogged('configuration reloaded'))).toMatchObject({
      level: 40,
      ...expected,
    });
    expect(await reload(gateway)).toMatchObject({ ...expected, changed: [] });
  });

  test('that are files with other contents are named, although the configuration is the same', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'spangate-reload-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const pathOf = (name: string) => join(folder, name);
    const put = async (name: string) => {
      const key_sha256 = createHash('sha256').update(name).digest('hex');
      await writeFile(pathOf('clients'), JSON.stringify({ name, key_sha256 }));
      await writeFile(pathOf('jwks'), JSON.stringify({ keys: [(await makeKey(name)).jwk] }));
      await writeFile(pathOf('statement'), createStatementKey().pem);
    };
    await put('first');
    await using a = await startFakeReplica({ name: 'a' });
    const jwt = { issuer: 'i', audience: 'a', tenant_claim: 't', jwks: pathOf('jwks') };
    const config = { clients_file: pathOf('clients'), statement_key: pathOf('statement'), jwt };
    await using gateway = await startGateway({ replicas: [a], config });
    expect(await reload(gateway)).toMatchObject({ changed: [] });
    await put('second');
    const { changed } = await reload(gateway);
    expect([...changed].sort()).toEqual(['clients_file', 'jwt.jwks', 'statement_key']);
    expect(await reload(gateway)).toMatchObject({ changed: [] });
  });

  test('of the way requests are spread apply as well', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [a, b] });
    gateway.writeConfig({ config: { routing: { policy: 'least_inflight' } } });
    expect((await reload(gateway)).changed).toEqual(['routing.policy']);
    const stream = createStream();
    a.answerOnce(stream.script);
    const busy = await gateway.chat({ stream: true });
    expect(await turnsOf(gateway, 3)).toEqual(['b', 'b', 'b']);
    stream.open();
    await busy.text();
  });
});

test('a worker that dies while a reload is under way holds nothing up, and the next one goes by it', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  const [a, b] = replicas;
  using workers = watchWorkerThreads();
  await using gateway = await startGateway({ replicas: [a], config: { gateway: { workers: 2 } } });
  gateway.writeConfig({ replicas: [b] });
  const [answer] = await Promise.all([reload(gateway), workers.kill(0)]);
  expect(answer.replicas).toEqual({ added: ['b'], changed: [], removed: ['a'] });
  await gateway.untilLogged('worker replaced');
  expect(new Set(await turnsOf(gateway, 8))).toEqual(new Set(['b']));
});

test('a reload is a span, whether it was refused or not', async () => {
  await using a = await startFakeReplica({ name: 'a' });
  await using b = await startFakeReplica({ name: 'b' });
  await using collector = await startFakeCollector();
  await using gateway = await startGateway({ replicas: [a], collector });
  gateway.writeConfig({ replicas: [b] });
  await reload(gateway);
  gateway.writeConfig('');
  await gateway.reload();
  const reloads = () => collector.spans.filter(({ name }) => name === 'reload');
  await collector.waitFor(() => reloads().length === 2);
  const [done, refused] = reloads();
  expect(done).toMatchObject({
    name: 'reload',
    kind: 1,
    attributes: {
      'gateway.changed_keys': ['replicas'],
      'gateway.replicas_added': 1,
      'gateway.replicas_changed': 0,
      'gateway.replicas_removed': 1,
    },
  });
  expect(refused).toMatchObject({
    name: 'reload',
    attributes: { 'error.type': 'invalid_config' },
    status: { code: 2 },
  });
});

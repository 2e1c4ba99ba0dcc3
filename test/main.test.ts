import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { COMPLETION, startFakeReplica, startFakeReplicas } from './support/fake-replica.ts';
import { chat, runMain, serve, spawnMain, TOKEN, writeConfig } from './support/main-process.ts';

vi.setConfig({ testTimeout: 60_000 }); // each test starts a process or two

/** A replica that holds its next request until it is released. */
async function startHoldingReplica() {
  const replica = await startFakeReplica();
  onTestFinished(() => replica.close());
  const gate = Promise.withResolvers<void>();
  replica.answerOnce(async ({ request, head, end }) => {
    await request.body;
    await gate.promise;
    await head(200, ['Content-Type', 'application/json']);
    end(JSON.stringify(COMPLETION));
  });
  return { replica, release: () => gate.resolve() };
}

describe('the command', () => {
  it('says what it serves, and where', async () => {
    const replicas = ['a', 'b'].map(
      (name, index) =>
        `- { name: ${name}, url: "http://127.0.0.1:${index + 1}", models: [m0, m${index + 1}] }`,
    );
    const many = Array.from({ length: 20 }, (_, index) => `x${index}`).join();
    const path = await writeConfig(
      `replicas:\n${replicas.join('\n')}\n- { name: c, url: "http://127.0.0.1:3", models: [${many}] }\n`,
      2,
    );
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:hunter2@127.0.0.1:9/base' };
    const { child, stdout, closed } = spawnMain(['-config', path], { env });
    const lines: string[] = [];
    for await (const line of createInterface({ input: stdout })) {
      lines.push(line);
      if (line.includes('"msg":"serving"')) child.kill('SIGTERM');
    }
    await closed;
    expect(lines.join()).not.toContain('hunter2');
    expect(JSON.parse(lines.find((line) => line.includes('"serving"')) ?? '')).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      listen: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      adminListen: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      workers: 2,
      replicas: 3,
      models: ['m0', 'm1', 'm2', ...Array.from({ length: 17 }, (_, index) => `x${index}`), 'and 3 more'],
      collector: 'http://127.0.0.1:9/base/v1/traces',
    });
  });

  it('prints its version, its help and a configuration, and exits with 0', async () => {
    const path = await writeConfig('replicas: [{ name: a, url: "http://a" }]\n');
    expect(await runMain(['--version'])).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      stderr: '',
    });
    expect(await runMain(['--help'])).toMatchObject({ code: 0, stderr: '' });
    expect(await runMain(['check', '-config', path])).toMatchObject({ code: 0, stderr: '' });
  });

  it('exits with 2 for a wrong command line or configuration, and with 1 for a missing file', async () => {
    const path = await writeConfig('replicas: []\n');
    expect(await runMain([])).toMatchObject({ code: 2, stdout: '' });
    expect(await runMain(['-config', path])).toEqual({
      code: 2,
      stdout: '',
      stderr: `${path}:2: replicas: found an empty list, expected a list of at least one replica, each with a dash before its name\n`,
    });
    expect(await runMain([`-config=${path}.not`])).toMatchObject({ code: 1, stdout: '' });
  });

  it('says in one line that its Node is too old', async () => {
    const preload = 'Object.defineProperty(process, "versions", { value: { node: "20.11.1" } })';
    expect(await runMain(['--version'], { preload })).toEqual({
      code: 1,
      stdout: '',
      stderr: 'gateway: Node.js 26 or later is needed; this is 20.11.1\n',
    });
  });

  it('tolerates a reader that closes the pipe', async () => {
    const path = await writeConfig('replicas: [{ name: a, url: "http://a" }]\n');
    const { stdout, stderr, closed } = spawnMain(['check', '-config', path]);
    stdout.destroy();
    expect(await text(stderr)).toBe('');
    expect((await closed).code).toBe(0);
  });
});

describe('a token that no client can send', () => {
  it.each([
    ['white space in it', 'two words'],
    ['a control character', 'token\u0007token'],
    ['a character that is not ASCII', 'jéton-de-16-lettres'],
  ])('because of %s makes the start fail with 2 and one line', async (_what, token) => {
    const path = await writeConfig('replicas: [{ name: a, url: "http://127.0.0.1:9" }]\n');
    const env = { SVC_ADMIN_TOKEN: token };
    for (const args of [['-config', path], ['quickstart'], ['stats', '-config', path]]) {
      const { code, stdout, stderr } = await runMain(args, { env });
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^gateway: SVC_ADMIN_TOKEN can never match: [^\n]*\n$/);
      expect(stderr).not.toContain(token);
    }
  });
});

describe('a gateway that cannot start exits with 1 and says why in one line', () => {
  const REPLICA = 'replicas: [{ name: a, url: "http://127.0.0.1:9", models: [m], engine: openai }]\n';

  it('because a port is in use', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    onTestFinished(() => void holder.close());
    const { port } = holder.address() as AddressInfo;
    const path = await writeConfig(REPLICA);
    await writeFile(
      path,
      `gateway: { listen: "127.0.0.1:${port}", admin_listen: "127.0.0.1:0" }\n${REPLICA}`,
    );
    const { code, stderr } = await runMain(['-config', path]);
    expect(stderr).toMatch(new RegExp(`^gateway: [^\\n]*127\\.0\\.0\\.1:${port}[^\\n]* in use: [^\\n]*\\n$`));
    expect(code).toBe(1);
  });

  it('because state_dir cannot be written', async () => {
    const path = await writeConfig(`${REPLICA}state_dir: gateway.yaml/state\n`);
    const { code, stderr } = await runMain(['-config', path]);
    expect(stderr).toMatch(/^gateway: [^\n]*gateway\.yaml\/state[^\n]*\n$/);
    expect(code).toBe(1);
  });
});

describe('a gateway that serves', () => {
  it('answers the commands of its operator', async () => {
    const replica = await startFakeReplica();
    onTestFinished(() => replica.close());
    const { child, adminUrl, closed } = await serve(replica);
    const admin = (...args: string[]) =>
      runMain([...args, '--admin', adminUrl], { env: { SVC_ADMIN_TOKEN: TOKEN } });
    expect((await admin('drain', 'a', '--force')).stdout).toBe('a is drained: nothing in flight\n');
    expect((await admin('replicas')).stdout).toMatch(/^NAME .*\na +drained \d+s +0 /);
    expect((await admin('undrain', 'a')).stdout).toBe('a takes requests again\n');
    expect((await admin('stats')).stdout).toMatch(/^exported +0$/m);
    expect(await admin('drain', 'b')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^gateway: the admin API refused: .* \(replica_not_found\)\n$/),
    });
    child.kill('SIGTERM');
    expect(await closed).toEqual({ code: 0, signal: null });
  });

  it('ignores white space around its token, and says so', async () => {
    const replica = await startFakeReplica();
    onTestFinished(() => replica.close());
    const { adminUrl, untilLogged } = await serve(replica, { env: { SVC_ADMIN_TOKEN: ` ${TOKEN}\r\n` } });
    await untilLogged('SVC_ADMIN_TOKEN has white space around it, which is ignored');
    await untilLogged('SVC_ADMIN_TOKEN has fewer than 16 characters: it can be guessed');
    for (const token of [TOKEN, `${TOKEN}\n`]) {
      const command = runMain(['stats', '--admin', adminUrl], { env: { SVC_ADMIN_TOKEN: token } });
      expect(await command).toMatchObject({ code: 0, stderr: '' });
    }
  });

  it('warns when nobody can use the admin API', async () => {
    const replica = await startFakeReplica();
    onTestFinished(() => replica.close());
    const { untilLogged } = await serve(replica, { env: { SVC_ADMIN_TOKEN: '' } });
    await untilLogged('SVC_ADMIN_TOKEN is not set: the admin API refuses every call');
  });

  it.each([
    ['SIGTERM', 1],
    ['SIGINT', 1],
    ['SIGTERM', 2],
    ['SIGINT', 2],
  ] as const)('finishes its requests after %s and exits with 0, with %i workers', async (signal, workers) => {
    const { replica, release } = await startHoldingReplica();
    const { child, url, untilLogged, closed, stderr } = await serve(replica, { workers });
    const answer = chat(url);
    await replica.nextRequest();
    child.kill(signal);
    await untilLogged('shutting down');
    release();
    expect(await (await answer).json()).toEqual(COMPLETION);
    expect(await closed).toEqual({ code: 0, signal: null });
    expect(await untilLogged('stopped')).toMatchObject({ cutRequests: 0, undeliveredRecords: 0 });
    expect(await stderr).toBe('');
  });

  it('treats two signals at once as one: process groups and npm deliver a signal twice', async () => {
    const { replica, release } = await startHoldingReplica();
    const { child, url, untilLogged, closed } = await serve(replica);
    const answer = chat(url);
    await replica.nextRequest();
    child.kill('SIGINT');
    child.kill('SIGTERM');
    await untilLogged('shutting down');
    release();
    expect((await answer).status).toBe(200);
    expect(await closed).toEqual({ code: 0, signal: null });
  });

  it('ends at once when the operator repeats the signal', async () => {
    const { replica } = await startHoldingReplica();
    const { child, url, closed } = await serve(replica);
    const answer = chat(url).catch((error: unknown) => error);
    await replica.nextRequest();
    const insisting = setInterval(() => child.kill('SIGTERM'), 50);
    onTestFinished(() => clearInterval(insisting));
    expect(await closed).toEqual({ code: 1, signal: null });
    expect(await answer).toBeInstanceOf(Error);
  });

  it('reloads its configuration on SIGHUP, and keeps the current one if the new one is wrong', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    const { child, url, configPath, untilLogged, closed } = await serve(a);
    await writeFile(configPath, (await readFile(configPath, 'utf8')).replace(a.url, b.url));
    child.kill('SIGHUP');
    expect(await untilLogged('configuration reloaded')).toMatchObject({
      changed: ['replicas'],
      replicas: { added: [], changed: ['a'], removed: [] },
    });
    expect((await chat(url)).status).toBe(200);
    expect(b.requests).toHaveLength(1);
    await writeFile(configPath, 'replicas: []');
    child.kill('SIGHUP');
    expect(await untilLogged('configuration refused')).toMatchObject({
      level: 'error',
      problems: [
        'line 1: replicas: found an empty list, expected a list of at least one replica, each with a dash before its name',
      ],
    });
    await rm(configPath);
    child.kill('SIGHUP');
    await untilLogged('configuration refused', ({ problems }) =>
      String(problems).endsWith('there is no such file'),
    );
    expect((await chat(url)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await closed).toEqual({ code: 0, signal: null });
  });

  it('keeps serving when its log is no longer read', async () => {
    const replica = await startFakeReplica();
    onTestFinished(() => replica.close());
    const { child, url, closed, stderr } = await serve(replica);
    child.stdout?.destroy();
    child.kill('SIGHUP'); // logs a line
    expect((await chat(url)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await closed).toEqual({ code: 0, signal: null });
    expect(await stderr).toBe('');
  });
});

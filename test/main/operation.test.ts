import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startFakeReplicas } from '#testkit/fake-replica.ts';
import { chat, serve, spawnMain, startReplica, TOKEN, writeConfig } from '#testkit/processes/main-process.ts';
import { invoke, start } from '../cli/invoke.ts';

const REFUSED = 'configuration refused: the former one stays in effect';

/** Serves until the test has finished, in no process of its own: only its log is looked at. */
async function serveHere(env: Readonly<Record<string, string>>) {
  const path = await writeConfig('replicas: [{ name: a, url: "http://127.0.0.1:9", models: [m] }]\n');
  const running = start(['-config', path], env);
  onTestFinished(async () => {
    running.interrupt();
    await running.ended;
  });
  return { untilLogged: (msg: string) => running.untilWritten(JSON.stringify({ msg }).slice(1, -1)) };
}

describe('a gateway that serves', () => {
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

  it('answers the commands of its operator', async () => {
    const replica = await startReplica();
    const { child, adminUrl, closed } = await serve(replica);
    const admin = (...args: string[]) => invoke([...args, '--admin', adminUrl], { SVC_ADMIN_TOKEN: TOKEN });
    expect((await admin('drain', 'a', '--force')).stdout).toBe('a is drained: nothing in flight\n');
    expect((await admin('replicas')).stdout).toMatch(/^NAME .*\na +drained \d+s +0 /);
    expect((await admin('undrain', 'a')).stdout).toBe('a takes requests again\n');
    expect((await admin('stats')).stdout).toMatch(/^exported +0$/m);
    expect(await admin('drain', 'b')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^gateway: the admin API refused: .* \(replica_not_found\)\n$/),
    });
    child.kill('SIGTERM');
    expect(await closed).toEqual({ code: 0, signal: null });
  });

  it('ignores white space around its token, and says so', async () => {
    const replica = await startReplica();
    const { adminUrl, untilLogged } = await serve(replica, { env: { SVC_ADMIN_TOKEN: ` ${TOKEN}\r\n` } });
    await untilLogged('SVC_ADMIN_TOKEN has white space around it, which is ignored');
    await untilLogged('SVC_ADMIN_TOKEN has fewer than 16 characters: it can be guessed');
    for (const token of [TOKEN, `${TOKEN}\n`]) {
      const command = invoke(['stats', '--admin', adminUrl], { SVC_ADMIN_TOKEN: token });
      expect(await command).toMatchObject({ exitCode: 0, stderr: '' });
    }
  });

  it('warns when nobody can use the admin API', async () => {
    const { untilLogged } = await serveHere({});
    await untilLogged(
      'the admin API refuses every call because of missing tokens: a GET needs SVC_READ_TOKEN, ' +
        'a drain needs SVC_OPERATOR_TOKEN, a reload needs SVC_ADMIN_TOKEN',
    );
  });

  it.each([
    ['SVC_READ_TOKEN', 'a drain needs SVC_OPERATOR_TOKEN, a reload needs SVC_ADMIN_TOKEN'],
    ['SVC_OPERATOR_TOKEN', 'a reload needs SVC_ADMIN_TOKEN'],
  ])(
    'says which calls nobody can make if %s is the only token, and which token is enough',
    async (variable, calls) => {
      const { untilLogged } = await serveHere({ [variable]: 'a-token-of-16-chars' });
      await untilLogged(`the admin API refuses some calls because of missing tokens: ${calls}`);
    },
  );

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
    expect(await untilLogged(REFUSED)).toMatchObject({
      level: 'error',
      file: configPath,
      problems: [
        'line 1: replicas: found an empty list, expected a list of at least one replica, each with a dash before its name',
      ],
    });
    await rm(configPath);
    child.kill('SIGHUP');
    await untilLogged(REFUSED, ({ problems }) => String(problems).endsWith('there is no such file'));
    expect((await chat(url)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await closed).toEqual({ code: 0, signal: null });
  });

  it('keeps serving when the reader of its log is gone, and says so once', async () => {
    const replica = await startReplica();
    const { child, url, closed, stderr } = await serve(replica);
    child.stdout?.destroy();
    for (let count = 0; count < 5; count++) {
      child.kill('SIGHUP'); // logs a line
      expect((await chat(url)).status).toBe(200);
    }
    child.kill('SIGTERM');
    expect(await closed).toEqual({ code: 0, signal: null });
    expect(JSON.parse(await stderr)).toMatchObject({ level: 'error', reason: 'EPIPE' });
  });
});

it('the quickstart shuts down when its terminal is closed', async () => {
  const cwd = dirname(await writeConfig(''));
  const { child, stdout, closed } = spawnMain(
    ['quickstart', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
    { cwd },
  );
  for await (const line of createInterface({ input: stdout })) {
    if (line.includes('quickstart.yaml')) child.kill('SIGHUP');
  }
  expect(await closed).toEqual({ code: 0, signal: null });
});

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runMain, spawnMain, writeConfig } from '#testkit/processes/main-process.ts';
import { closeServer, listen } from '#testkit/servers/local-server.ts';
import { invoke } from '../cli/invoke.ts';

describe('the command', () => {
  it('prints its version, its help and a configuration, and exits with 0', async () => {
    const path = await writeConfig('replicas: [{ name: a, url: "http://a" }]\nhealth: {}\n');
    expect(await runMain(['--version'])).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      stderr: '',
    });
    expect(await runMain(['--help'])).toMatchObject({ code: 0, stderr: '' });
    expect(await runMain(['check', '-config', path])).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(`^# ${path} is valid\\. With all defaults:\n`),
    });
  });

  it('exits with 2 for a wrong command line, and for a configuration that is wrong or missing', async () => {
    const path = await writeConfig('replicas: []\n');
    expect(await runMain([])).toMatchObject({ code: 2, stdout: '' });
    expect(await runMain(['-config', path])).toEqual({
      code: 2,
      stdout: '',
      stderr: `${path}:2: replicas: found an empty list, expected a list of at least one replica, each with a dash before its name\n`,
    });
    expect(await runMain([`-config=${path}.not`])).toMatchObject({ code: 2, stdout: '' });
  });

  it('does not open its standard input unless it reads it', async () => {
    const preload =
      'Object.defineProperty(process, "stdin", { get: () => { throw new Error("standard input was opened"); } })';
    expect(await runMain(['help', 'drain'], { preload })).toMatchObject({ code: 0, stderr: '' });
    const refused = await runMain(['records', '--admin', 'http://127.0.0.1:1'], {
      env: { SVC_ADMIN_TOKEN: 'a-token-of-sixteen' },
      preload,
    });
    expect(refused.stderr).toContain('cannot reach the admin API');
  });

  it('says in one line that its Node is too old', async () => {
    const preload = 'Object.defineProperty(process, "versions", { value: { node: "20.11.1" } })';
    expect(await runMain(['--version'], { preload })).toEqual({
      code: 1,
      stdout: '',
      stderr: 'gateway: Node.js 24 or later is needed; this is 20.11.1\n',
    });
  });

  it('tolerates a reader that closes the pipe', async () => {
    const path = await writeConfig('replicas: [{ name: a, url: "http://a" }]\nhealth: {}\n');
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
    const path = await writeConfig('replicas: [{ name: a, url: "http://127.0.0.1:9" }]\nhealth: {}\n');
    const env = { SVC_ADMIN_TOKEN: token };
    for (const args of [['-config', path], ['quickstart'], ['stats', '-config', path]]) {
      const { exitCode, stdout, stderr } = await invoke(args, env);
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
      expect(stderr).toMatch(/^gateway: SVC_ADMIN_TOKEN can never match: [^\n]*\n$/);
      expect(stderr).not.toContain(token);
    }
  });
});

describe('a gateway that cannot start exits with 1 and says why in one line', () => {
  const REPLICA = 'replicas: [{ name: a, url: "http://127.0.0.1:9", models: [m], engine: openai }]\n';

  it('because a port is in use', async () => {
    const holder = createServer();
    const port = await listen(holder);
    onTestFinished(() => closeServer(holder));
    const path = await writeConfig(REPLICA);
    await writeFile(
      path,
      `gateway: { listen: "127.0.0.1:${port}", admin_listen: "127.0.0.1:0" }\n${REPLICA}`,
    );
    const { code, stderr } = await runMain(['-config', path]);
    expect(stderr).toMatch(
      new RegExp(`^gateway: [^\\n]*127\\.0\\.0\\.1:${port}[^\\n]* in use[^\\n]*: stop [^\\n]*\\n$`),
    );
    expect(code).toBe(1);
  });

  it('because state_dir cannot be written', async () => {
    const path = await writeConfig(`${REPLICA}state_dir: gateway.yaml/state\n`);
    const { exitCode, stderr } = await invoke(['-config', path]);
    expect(stderr).toMatch(/^gateway: [^\n]*gateway\.yaml\/state[^\n]*\n$/);
    expect(exitCode).toBe(1);
  });
});

it.each(['SIGHUP', 'SIGTERM', 'SIGUSR2'] as const)(
  'a command that asks a gateway is ended by %s',
  async (signal) => {
    const server = createServer();
    const asked = once(server, 'request');
    const port = await listen(server);
    onTestFinished(() => closeServer(server));
    const { child, closed } = spawnMain(['stats', '--admin', `http://127.0.0.1:${port}`], {
      env: { SVC_ADMIN_TOKEN: 'token' },
    });
    await asked;
    child.kill(signal);
    expect(await closed).toEqual({ code: null, signal });
  },
);

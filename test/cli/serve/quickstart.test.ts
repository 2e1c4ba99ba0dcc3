import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { quickStart } from '#testkit/processes/quick-start.ts';
import { invoke, start as startInProcess } from '../invoke.ts';

const MAIN = resolve(import.meta.dirname, '../../../src/main.ts');
const ANY_PORTS = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];

/** A quickstart in its own directory. */
interface Quickstart {
  readonly directory: string;
  /** Resolves with the match once standard output has it. */
  stdoutHas(pattern: RegExp): Promise<RegExpExecArray>;
  stdout(): string;
  stderr(): string;
  /** Sends SIGINT, as Ctrl-C does, and resolves with the exit code. */
  interrupt(): Promise<number | null>;
  readonly exited: Promise<number | null>;
}

function start(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  directory = mkdtempSync(join(tmpdir(), 'quickstart-')),
): Quickstart {
  const child = spawn(process.execPath, [MAIN, 'quickstart', ...args], {
    cwd: directory,
    env: { ...quickStart(), PATH: process.env.PATH, ...env },
  });
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await rm(directory, { recursive: true, force: true });
  });
  return observe(child, directory);
}

/** One that is no process of its own: what its process does is not the point. It keeps its state in its directory. */
function startHere(
  env: Readonly<Record<string, string>> = {},
  directory = mkdtempSync(join(tmpdir(), 'quickstart-')),
): Omit<Quickstart, 'stderr'> {
  const all = { STATE_DIRECTORY: directory, ...env };
  const running = startInProcess(['quickstart', ...ANY_PORTS], all);
  const exited = running.ended.then(({ exitCode }) => exitCode);
  const interrupt = async () => {
    running.interrupt();
    return await exited;
  };
  onTestFinished(async () => {
    await interrupt();
    await rm(directory, { recursive: true, force: true });
  });
  return { directory, exited, interrupt, stdoutHas: running.untilMatched, stdout: () => running.output };
}

function observe(child: ChildProcess, directory: string): Quickstart {
  const text = { stdout: '', stderr: '' };
  child.stdout?.on('data', (chunk) => {
    text.stdout += String(chunk);
  });
  child.stderr?.on('data', (chunk) => {
    text.stderr += String(chunk);
  });
  const exited = once(child, 'close').then(([code]) => code);
  return {
    directory,
    async stdoutHas(pattern) {
      for (;;) {
        const match = pattern.exec(text.stdout);
        if (match !== null) return match;
        const next = child.stdout === null ? exited : once(child.stdout, 'data');
        if (!(await Promise.race([next, exited.then(() => null)]))) throw new Error(`exited: ${text.stderr}`);
      }
    },
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    async interrupt() {
      child.kill('SIGINT');
      return await exited;
    },
    exited,
  };
}

/** Runs the nth command that standard output suggests, in a shell, as if pasted. */
async function paste(
  quickstart: Pick<Quickstart, 'stdout' | 'stdoutHas'>,
  position: number,
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  await quickstart.stdoutHas(/Ctrl-C/);
  const commands = quickstart.stdout().match(/^ {2}curl (?:.*\\\n)*.*$/gm) ?? [];
  const run = promisify(execFile);
  const { stdout } = await run('sh', ['-c', commands[position] ?? 'false'], {
    env: { PATH: process.env.PATH, ...env },
  });
  return stdout;
}

describe('npm start', () => {
  it('streams the response to its first command, prints the record, and writes it to the file', async () => {
    const quickstart = start(ANY_PORTS);
    expect(await paste(quickstart, 0)).toMatch(/^data: \{[\s\S]*data: \[DONE\]\n\n$/);
    const record =
      /^\S+ {2}200 {2}(sim-[ab]) {2}demo {2}chat {2}in \d+ {2}out 32 {2}cached 0 {2}ttft .* tenant acme {2}trace ([0-9a-f]{32})$/m;
    const [, , traceId] = await quickstart.stdoutHas(record);
    expect(await quickstart.interrupt()).toBe(0);
    expect(quickstart.stderr()).toBe('');
    const lines = await readFile(join(quickstart.directory, 'state/records.jsonl'), 'utf8');
    expect(lines).toContain(traceId);
  });

  it('drains with its second command', async () => {
    const quickstart = startHere();
    expect(JSON.parse(await paste(quickstart, 1))).toMatchObject({
      was_drained: false,
      replica: { name: 'sim-a', drained: true, gpu_model: 'simulated' },
    });
    await paste(quickstart, 0);
    await quickstart.stdoutHas(/ {2}200 {2}sim-b /);
    expect(await quickstart.interrupt()).toBe(0);
  });

  it('answers the commands that it suggests for questions', async () => {
    const quickstart = start(ANY_PORTS);
    await paste(quickstart, 0);
    const shell = quickstart.stdout().match(/^ {2}(?:export |npx gateway ).*$/gm) ?? [];
    expect(shell).toHaveLength(5);
    const script = shell.join('\n').replaceAll('npx gateway', `'${process.execPath}' '${MAIN}'`);
    const { stdout } = await promisify(execFile)('sh', ['-ec', script]);
    expect(stdout).toContain('sim-b is slow now');
    expect(stdout).toContain('nothing is wrong');
    expect(stdout).toMatch(/^acme +1 /m);
    expect(stdout).toMatch(/ start /);
    expect(await quickstart.interrupt()).toBe(0);
  });

  it('names the replica that is still drained after a restart, and undrains it with its second command', async () => {
    const first = startHere();
    await paste(first, 1);
    expect(await first.interrupt()).toBe(0);
    const second = startHere({}, first.directory);
    await second.stdoutHas(/sim-a http:\S+ \(still drained\), sim-b/);
    expect(JSON.parse(await paste(second, 1))).toMatchObject({
      was_drained: true,
      replica: { drained: false },
    });
    expect(await second.interrupt()).toBe(0);
  });

  it('saves its configuration as a file that only its owner can read', async () => {
    const quickstart = startHere();
    const [, path] = await quickstart.stdoutHas(/^ {2}config {4}(\S+) [\s\S]*Ctrl-C/m);
    const file = resolve(path ?? '');
    const text = await readFile(file, 'utf8');
    expect(text).toMatch(/^replicas:\n {2}- name: sim-a$/m);
    expect(text).toMatch(/^health: /m);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await quickstart.interrupt()).toBe(0);
  });

  it('does not print a token of the user, and its command works if that token is set', async () => {
    const env = { SVC_ADMIN_TOKEN: 'my-own-token' };
    const quickstart = startHere(env);
    expect(JSON.parse(await paste(quickstart, 1, env))).toMatchObject({ was_drained: false });
    expect(quickstart.stdout()).not.toContain('my-own-token');
    expect(await quickstart.interrupt()).toBe(0);
  });

  it('sends records to a collector that the environment names', async () => {
    await using collector = await startFakeCollector();
    const quickstart = start(ANY_PORTS, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await paste(quickstart, 0);
    await collector.waitFor(({ spans }) => spans.length > 0);
    expect(collector.calls[0]?.path).toBe('/v1/traces');
    expect(collector.spans[0]?.attributes).toHaveProperty(['gateway.request_id']);
    expect(await quickstart.interrupt()).toBe(0);
  });

  it('names every port that is in use, and the command with ports that are free', async () => {
    const other = createServer();
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const address = `127.0.0.1:${port}`;
    const quickstart = start(['--listen', address, '--admin-listen', address]);
    expect(await quickstart.exited).toBe(1);
    const [first = '', second = '', advice = ''] = quickstart.stderr().split('\n');
    for (const line of [first, second]) expect(line).toMatch(new RegExp(`port ${port}: .* in use.*: stop `));
    const [, listen = '', adminListen = ''] =
      /^Try: gateway quickstart --listen 127\.0\.0\.1:(\d+) --admin-listen 127\.0\.0\.1:(\d+)$/.exec(
        advice,
      ) ?? [];
    expect(new Set([port, Number(listen), Number(adminListen)]).size).toBe(3);
    expect(quickstart.stdout()).toBe('');
  });

  it('prints a link that signs in once', async () => {
    const quickstart = startHere();
    const [, url, code = ''] = await quickstart.stdoutHas(/^ {2}(http:\S+)\/#sign-in=(\S+)$/m);
    const call = (method: string, path: string, token: string) =>
      fetch(`${url}/admin/${path}`, { method, headers: { Authorization: `Bearer ${token}` } });
    const { token } = (await (await call('POST', 'sign-in', code)).json()) as { token: string };
    expect((await call('GET', 'overview?after=0', token)).status).toBe(200);
    expect((await call('POST', 'sign-in', code)).status).toBe(401);
    expect(await quickstart.interrupt()).toBe(0);
  });

  it('carries out keys on a terminal: traffic, a drain, a replica that fails, another link', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'quickstart-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const keys = new PassThrough();
    const stdin = Object.assign(keys, { setRawMode: () => undefined });
    const terminal = { columns: 120, rows: 50 };
    const env = { STATE_DIRECTORY: directory };
    const running = startInProcess(['quickstart', ...ANY_PORTS], env, { stdin, terminal });
    await running.untilWritten('Press Ctrl-C to stop.');
    expect(running.output).toContain('s  sim-b is slow');
    const press = async (key: string, answer: string) => {
      keys.write(key);
      await running.untilWritten(answer);
    };
    await press('o', '/#sign-in=');
    await press('f', 'sim-b is failing now');
    await press('', 'Sample traffic: twelve streams per second');
    await running.untilError('sim-b fails');
    await press('n', 'sim-b is normal now');
    await press('d', 'sim-a is drained: new requests go to the other one.');
    await press('', 'sim-a is safe to stop');
    await press('d', 'sim-a is undrained');
    await press('t', 'Sample traffic has ended');
    keys.write('q');
    const { exitCode, stdout } = await running.ended;
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/Sample traffic has ended: \d+ requests, \d+ answered, \d+ failed/);
    expect(stdout.match(/#sign-in=\S+/g)).toHaveLength(2);
    expect(stdout).not.toMatch(/ feature sample| {2}tenant acme/);
  });

  it.each([
    ['an address that is none', ['--listen', 'here'], /gateway\.listen: found "here", expected/],
    ['an option that is unknown', ['--colour'], /^gateway: unknown option '--colour'\n/],
  ])('refuses %s', async (_, args, message) => {
    const { exitCode, stderr } = await invoke(['quickstart', ...args]);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(message);
  });
});

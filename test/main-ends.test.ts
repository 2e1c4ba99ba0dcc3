import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { decodeRecord } from '#otel/encode/decode-record.ts';
import { type FakeReplica, hang, startFakeReplica } from './support/fake-replica.ts';
import { chat, type Serving, serve, spawnMain, writeConfig } from './support/main-process.ts';

vi.setConfig({ testTimeout: 60_000 }); // each test starts a process or two

/** Nothing listens there: records can only be stored. */
const AWAY = { url: 'http://127.0.0.1:9' };

async function startReplica(): Promise<FakeReplica> {
  const replica = await startFakeReplica();
  onTestFinished(() => replica.close());
  return replica;
}

/** The error types of the records in the spool. */
async function spooledEndings({ configPath }: Serving): Promise<readonly unknown[]> {
  const directory = join(dirname(configPath), 'state', 'spool');
  const files = await Promise.all(
    (await readdir(directory)).map((name) => readFile(join(directory, name), 'utf8')),
  );
  const lines = files.flatMap((file) => file.trimEnd().split('\n'));
  return lines
    .map((line) => decodeRecord(Buffer.from(line.slice('12345678 '.length), 'base64')))
    .map((record) => record?.error_type);
}

describe('an uncaught error ends the gateway with 1', () => {
  it.each([
    ['an exception', 'throw new TypeError(word)', 'uncaught exception', 1],
    ['a rejection', 'Promise.reject(new TypeError(word))', 'unhandled rejection', 1],
    ['a rejection', 'Promise.reject(new TypeError(word))', 'unhandled rejection', 2],
  ])(
    'after %s, %s: its records are stored, and one line says where it was',
    async (_what, statement, msg, workers) => {
      const replica = await startReplica();
      // The frames quote this script itself.
      const word = "const word = ['can', 'ary\\n    at can', 'ary (a.ts:1:1)'].join('')";
      const preload = `${word}; process.on('SIGUSR2', () => { ${statement} })`;
      const gateway = await serve(replica, { preload, workers, collector: AWAY });
      for (let served = 0; served < 3; served++) expect((await chat(gateway.url)).status).toBe(200);
      replica.answer(hang);
      const cut = chat(gateway.url);
      await replica.untilRequests(4);
      gateway.child.kill('SIGUSR2');
      expect(await gateway.closed).toEqual({ code: 1, signal: null });
      expect((await cut).status).toBe(503);
      const said = await gateway.stderr;
      expect(JSON.parse(said)).toMatchObject({ level: 'fatal', err: { name: 'TypeError' }, msg });
      expect(said).not.toContain('canary');
      expect((await spooledEndings(gateway)).toSorted()).toEqual([
        'shutting_down',
        ...[undefined, undefined, undefined],
      ]);
    },
  );

  it('however often it happens while the records are stored', async () => {
    const replica = await startReplica();
    const preload = `process.on('SIGUSR2', () => setInterval(() => { throw new Error('again') }, 1))`;
    const gateway = await serve(replica, { preload, collector: AWAY });
    expect((await chat(gateway.url)).status).toBe(200);
    gateway.child.kill('SIGUSR2');
    expect(await gateway.closed).toEqual({ code: 1, signal: null });
    expect((await gateway.stderr).trim().split('\n')).toHaveLength(1);
    expect(await spooledEndings(gateway)).toEqual([undefined]);
  });
});

describe('a signal to a gateway that serves', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGXCPU', 'SIGPWR'] as const)(
    '%s shuts it down, with its records stored',
    async (signal) => {
      const gateway = await serve(await startReplica(), { collector: AWAY });
      expect((await chat(gateway.url)).status).toBe(200);
      gateway.child.kill(signal);
      expect(await gateway.closed).toEqual({ code: 0, signal: null });
      expect(await spooledEndings(gateway)).toEqual([undefined]);
      expect(await gateway.stderr).toBe('');
    },
  );

  it.each([1, 2])('is ignored if it has no meaning, with %i workers', async (workers) => {
    const gateway = await serve(await startReplica(), { workers, collector: AWAY });
    for (const signal of ['SIGUSR2', 'SIGALRM', 'SIGVTALRM', 'SIGIO', 'SIGSTKFLT', 'SIGPIPE'] as const) {
      gateway.child.kill(signal);
      expect((await chat(gateway.url)).status).toBe(200);
    }
    gateway.child.kill('SIGTERM');
    expect(await gateway.closed).toEqual({ code: 0, signal: null });
    expect(await gateway.stderr).toBe('');
  });

  it('SIGUSR1 opens no debugger', async () => {
    const gateway = await serve(await startReplica(), { nodeArgs: ['--inspect-port=0'] });
    for (let round = 0; round < 3; round++) {
      gateway.child.kill('SIGUSR1');
      expect((await chat(gateway.url)).status).toBe(200);
    }
    gateway.child.kill('SIGTERM');
    expect(await gateway.closed).toEqual({ code: 0, signal: null });
    expect(await gateway.stderr).toBe('');
  });

  it('SIGUSR1 before the first line of code leaves no debugger open', async () => {
    const preload = `const { url } = await import('node:inspector');
      process.kill(process.pid, 'SIGUSR1');
      while (url() === undefined) await new Promise(setImmediate);
      process.on('SIGUSR2', async () => {
        while (url() !== undefined) await new Promise(setImmediate);
        process.kill(process.pid, 'SIGTERM');
      });
      process.on('exit', () => process.getBuiltinModule('fs').writeSync(2, 'at the end ' + url()));`;
    const gateway = await serve(await startReplica(), { nodeArgs: ['--inspect-port=0'], preload });
    expect((await chat(gateway.url)).status).toBe(200);
    gateway.child.kill('SIGUSR2');
    expect(await gateway.closed).toEqual({ code: 0, signal: null });
    const said = await gateway.stderr;
    expect(said).toContain('Debugger listening on ws://');
    expect(said).toContain('at the end undefined');
  });

  it('a debugger that the command line asks for stays open', async () => {
    const gateway = await serve(await startReplica(), { nodeArgs: ['--inspect=127.0.0.1:0'] });
    gateway.child.kill('SIGTERM');
    await gateway.closed;
    expect(await gateway.stderr).toContain('Debugger listening on ws://');
  });

  it('SIGHUP reloads it, even if it comes before the gateway serves', async () => {
    const replica = await startReplica();
    const preload = `process.on('newListener', function told(event) {
      if (event !== 'SIGHUP') return;
      process.off('newListener', told);
      setImmediate(() => process.kill(process.pid, 'SIGHUP'));
    })`;
    const gateway = await serve(replica, { preload });
    await gateway.untilLogged('configuration reloaded');
    gateway.child.kill('SIGTERM');
    expect(await gateway.closed).toEqual({ code: 0, signal: null });
  });
});

it.each(['SIGHUP', 'SIGTERM', 'SIGUSR2'] as const)(
  'a command that asks a gateway is ended by %s',
  async (signal) => {
    const server = createServer();
    const asked = once(server, 'request');
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    const { port } = server.address() as AddressInfo;
    const { child, closed } = spawnMain(['stats', '--admin', `http://127.0.0.1:${port}`], {
      env: { SVC_ADMIN_TOKEN: 'token' },
    });
    await asked;
    child.kill(signal);
    expect(await closed).toEqual({ code: null, signal });
  },
);

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

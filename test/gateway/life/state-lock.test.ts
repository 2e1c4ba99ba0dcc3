import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { runMain, type Serving, serve, spawnMain, TOKEN } from '#testkit/processes/main-process.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const REPLICAS = [{ name: 'a', url: 'http://127.0.0.1:9' }];
const IN_USE =
  /state_dir \S+: another running gateway uses it(?: \(pid \d+ on host \S+\))?: each gateway needs its own$/;

let stateDir: string;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'spangate-'));
  return () => rm(stateDir, { recursive: true });
});

const start = (directory = stateDir) => startGateway({ replicas: REPLICAS, stateDir: directory });

/** The socket of a process that was killed. */
async function leaveLock(): Promise<string> {
  const server = createServer().listen({ path: join(stateDir, 'left') });
  await once(server, 'listening');
  const name = `lock.${randomUUID()}`;
  await rename(join(stateDir, 'left'), join(stateDir, name));
  server.close();
  return name;
}

describe('a second gateway in the same state_dir', () => {
  it('does not start while the first runs, and starts when that has ended', async () => {
    const first = await start();
    await expect(start()).rejects.toThrow(IN_USE);
    await expect(start()).rejects.toThrow(`(pid ${process.pid} on host ${hostname()})`);
    await first.close();
    await using _second = await start();
    expect((await readdir(stateDir)).filter((name) => name.startsWith('lock'))).toHaveLength(1);
  });

  it('starts when the first could not', async () => {
    await writeFile(join(stateDir, 'salt'), 'damaged');
    await expect(startGateway({ replicas: REPLICAS, stateDir, hashSalt: '' })).rejects.toThrow('hash salt');
    await rm(join(stateDir, 'salt'));
    await using _second = await start();
  });

  it('does not start however long the name of the directory is', async () => {
    const deep = join(stateDir, 'x'.repeat(100), 'y'.repeat(100));
    await using _first = await start(deep);
    await expect(start(deep)).rejects.toThrow(IN_USE);
  });

  it.each([0, 1, 3])('starts once of six at a time, beside %i sockets that were left', async (left) => {
    for (let count = 0; count < left; count++) await leaveLock();
    const starts = await Promise.allSettled(Array.from({ length: 6 }, () => start()));
    const started = starts.flatMap((each): StartedGateway[] =>
      each.status === 'fulfilled' ? [each.value] : [],
    );
    for (const gateway of started) await gateway.close();
    expect(started).toHaveLength(1);
    for (const each of starts) if (each.status === 'rejected') expect(each.reason.message).toMatch(IN_USE);
    expect((await readdir(stateDir)).filter((name) => name.startsWith('lock'))).toEqual([]);
  });

  it.each([
    ['is damaged', '{"lock":'],
    ['is of another lock', JSON.stringify({ lock: `lock.${randomUUID()}`, pid: 1, host: 'elsewhere' })],
    ['is hostile', JSON.stringify({ lock: 1, pid: 'x', host: '\u001b[31m' })],
  ])('does not start, nor say who runs, if the file of the owner %s', async (_, text) => {
    await using _first = await start();
    await writeFile(join(stateDir, 'owner.json'), text);
    await expect(start()).rejects.toThrow('another running gateway uses it: each gateway needs its own');
  });

  it('leaves alone what only looks like a lock', async () => {
    const names = ['lock', 'lock.yaml', `lock.${randomUUID()}.bak`];
    for (const name of names) await writeFile(join(stateDir, name), '');
    await using _gateway = await start();
    expect(await readdir(stateDir)).toEqual(expect.arrayContaining(names));
  });
});

describe('a lock of another machine, on a shared volume', () => {
  async function leaveLockOf(host: string): Promise<void> {
    const lock = await leaveLock();
    await writeFile(join(stateDir, 'owner.json'), JSON.stringify({ lock, pid: 7, host }));
  }

  /** Does what the owner does, until the test is over. */
  function keepTouching(): void {
    const timer = setInterval(() => {
      const now = new Date();
      // The last one may find the folder gone.
      utimes(join(stateDir, 'owner.json'), now, now).catch(() => undefined);
    }, 50);
    onTestFinished(() => clearInterval(timer));
  }

  it('is respected as long as its file is touched', async () => {
    await leaveLockOf('elsewhere');
    keepTouching();
    await expect(start()).rejects.toThrow('another running gateway uses it (pid 7 on host elsewhere)');
  });

  it('is removed when its file is not touched any more', async () => {
    await leaveLockOf('elsewhere');
    const startedMs = performance.now();
    await using _gateway = await start();
    expect(performance.now() - startedMs).toBeGreaterThan(5_000);
    expect((await readdir(stateDir)).filter((name) => name.startsWith('lock'))).toHaveLength(1);
  });

  it('is not respected if the process was of this machine: its socket shows that it has ended', async () => {
    await leaveLockOf(hostname());
    keepTouching();
    await using _gateway = await start();
  });
});

describe('a gateway in a process of its own', () => {
  const startAgain = ({ configPath }: Serving) =>
    runMain(['-config', configPath], { env: { SVC_ADMIN_TOKEN: TOKEN } });

  it('keeps its state_dir while it lives, and not when it was killed', async () => {
    const replica = await startFakeReplica();
    const first = await serve(replica);
    const refused = { code: 1, stdout: '', stderr: expect.stringMatching(/^gateway: state_dir [^\n]*\n$/) };
    expect(await startAgain(first)).toEqual(refused);
    first.child.kill('SIGSTOP');
    expect(await startAgain(first)).toEqual(refused);
    expect(await runMain(['check', '-config', first.configPath])).toMatchObject({ code: 0 });
    first.child.kill('SIGKILL');
    await first.closed;
    const left = await readdir(join(dirname(first.configPath), 'state'));
    expect(left.filter((name) => name.startsWith('lock'))).toHaveLength(1);

    const { child, stdout, closed } = spawnMain(['-config', first.configPath]);
    for await (const line of createInterface({ input: stdout })) {
      if (line.includes('"msg":"serving"')) child.kill('SIGTERM');
    }
    expect(await closed).toEqual({ code: 0, signal: null });
    await replica.close();
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { EventLog } from '#testkit/event-log.ts';
import { answerJson, COMPLETION, startFakeReplica } from '#testkit/fake-replica.ts';
import { quickStart } from '#testkit/processes/quick-start.ts';
import { type AdminProxy, startAdminProxy } from '#testkit/servers/admin-proxy.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';

const MAIN = join(import.meta.dirname, '../../../src/main.ts');
const ENV = { ...quickStart(), PATH: process.env.PATH ?? '', SVC_ADMIN_TOKEN: ADMIN_TOKEN };

interface Scene extends AsyncDisposable {
  readonly proxy: AdminProxy;
  /** What the commands have written: `begin a`, `end a`. */
  readonly log: () => Promise<readonly string[]>;
  readonly logPath: string;
  readonly statePath: string;
  /** The most replicas that were drained when anything was called. */
  readonly mostDrained: () => number;
  readonly drainedNames: () => Promise<readonly string[]>;
  /** Sends requests that replica a fails, until it is disposed. */
  load(): AsyncDisposable;
  /** Starts `gateway rollout` as a process. */
  roll(...args: readonly string[]): Rollout;
}

interface Rollout {
  kill(): Promise<void>;
  /** Resolves as soon as it has written this. */
  untilWritten(text: string): Promise<void>;
  readonly ended: Promise<{ readonly code: number | null; readonly text: string }>;
}

/** Three replicas behind a gateway, whose admin API is reached through a proxy. */
async function setUp(): Promise<Scene> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-killed-'))).path;
  const replicas = await Promise.all(['a', 'b', 'c'].map((name) => startFakeReplica({ name })));
  for (const replica of replicas) {
    cleanUp.use(replica);
    const list = answerJson({ object: 'list', data: [{ id: 'm', object: 'model', owned_by: 'x' }] });
    replica.answerProbes(list);
    replica.answer(answerJson(COMPLETION));
  }
  const gateway = cleanUp.use(await startGateway({ replicas }));
  let most = 0;
  const drainedNames = async () =>
    (await gateway.replicas()).filter(({ drained }) => drained).map(({ name }) => name);
  const proxy = cleanUp.use(
    await startAdminProxy(gateway.adminUrl, async () => {
      most = Math.max(most, (await drainedNames()).length);
    }),
  );
  const logPath = join(folder, 'log');
  const statePath = join(folder, 'rollout.json');
  const owned = cleanUp.move();
  return {
    proxy,
    logPath,
    statePath,
    drainedNames,
    mostDrained: () => most,
    log: async () => (await readFile(logPath, 'utf8').catch(() => '')).trim().split('\n'),
    load() {
      replicas[0]?.answer(answerJson({ error: { message: 'no' } }, { status: 500 }));
      let isOver = false;
      const client = async () => {
        while (!isOver) await (await gateway.chat()).text();
      };
      const clients = Promise.all([client(), client(), client()]);
      return {
        [Symbol.asyncDispose]: async () => {
          isOver = true;
          await clients;
        },
      };
    },
    roll(...args) {
      const admin = args.includes('--resume') ? [] : ['--admin', proxy.url];
      const child = spawn(process.execPath, [MAIN, 'rollout', ...args, ...admin, '--state', statePath], {
        env: ENV,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const written = new EventLog<string>();
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (chunk) => written.push(chunk));
      }
      const text = () => written.items.join('');
      const ended = once(child, 'close').then(([code]) => ({ code, text: text() }));
      owned.defer(async () => {
        child.kill('SIGKILL');
        await ended;
      });
      return {
        untilWritten: (part) => written.until(() => text().includes(part)),
        async kill() {
          child.kill('SIGKILL');
          await ended;
        },
        ended,
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** As fast as it gets. */
const QUICK = ['--ramp', '0s', '--verdict', 'off'];

const isDrain = (call: string) => call.includes('/a/drain');
const isUndrain = (call: string) => call.includes('/a/undrain');

/** Where a rollout is killed: at a call, or by its own command. */
interface Moment {
  readonly at: string;
  readonly when?: 'before' | 'after';
  readonly isCall?: () => (call: string) => boolean;
  /** What kills the rollout that runs it. */
  readonly command?: (scene: Scene) => string;
  /** Whether the replica is drained when the rollout has been killed. */
  readonly leavesDrained: boolean;
}

const onceKilled = ({ logPath }: Scene) =>
  `test -e ${logPath}.killed || { : >${logPath}.killed; kill -9 $PPID; }`;

const MOMENTS: readonly Moment[] = [
  { at: 'before its drain arrives', when: 'before', isCall: () => isDrain, leavesDrained: false },
  { at: 'before its drain is answered', when: 'after', isCall: () => isDrain, leavesDrained: true },
  { at: 'by its command', command: onceKilled, leavesDrained: true },
  {
    at: 'before the engine is asked',
    when: 'before',
    isCall: () => (call) => call.includes('/probe'),
    leavesDrained: true,
  },
  { at: 'before its undrain arrives', when: 'before', isCall: () => isUndrain, leavesDrained: true },
  { at: 'before its undrain is answered', when: 'after', isCall: () => isUndrain, leavesDrained: false },
  {
    at: 'while it is compared',
    when: 'before',
    isCall() {
      let isUndrained = false;
      return (call) => {
        isUndrained ||= isUndrain(call);
        return isUndrained && call.endsWith('/admin/replicas');
      };
    },
    leavesDrained: false,
  },
];

describe('a rollout that is killed', () => {
  test.concurrent.each(MOMENTS)('$at is told of, and goes on with --resume', async (moment) => {
    await using scene = await setUp();
    const { proxy, log, logPath, drainedNames } = scene;
    const kill = moment.command?.(scene) ?? ':';
    const exec = `echo begin {name} >>${logPath}; ${kill}; echo end {name} >>${logPath}`;
    const reached = moment.isCall && proxy.hold(moment.when ?? 'before', moment.isCall());
    const rollout = scene.roll('a', 'b', ...QUICK, '--exec', exec);
    await (reached ?? rollout.ended);
    await rollout.kill();
    expect(await drainedNames()).toEqual(moment.leavesDrained ? ['a'] : []);

    const other = await scene.roll('b', ...QUICK, '--exec', 'true').ended;
    expect(other).toEqual({ code: 1, text: expect.stringContaining('a rollout is not finished (a, b;') });

    const { code, text } = await scene.roll('--resume').ended;
    expect(text).toContain('2 of 2 replicas done');
    expect(code).toBe(0);
    expect(await drainedNames()).toEqual([]);
    expect(scene.mostDrained()).toBe(1);
    // Each was restarted, and no command began while another one ran.
    const lines = await log();
    expect(lines).toEqual(
      lines.map((_, index) => expect.stringMatching(index % 2 === 0 ? /^begin/ : /^end/)),
    );
    expect(lines).toContain('end a');
    expect(lines.at(-1)).toBe('end b');
    await expect(access(scene.statePath)).rejects.toThrow('ENOENT');
  });

  test.concurrent('while its command runs waits for that command before it runs the next', async () => {
    await using scene = await setUp();
    const { logPath, log } = scene;
    const mayEnd = `${logPath}.may-end`;
    const exec = `echo begin >>${logPath}; test -e ${logPath}.killed || { : >${logPath}.killed; kill -9 $PPID; until test -e ${mayEnd}; do sleep 0.05; done; }; echo end >>${logPath}`;
    await scene.roll('a', ...QUICK, '--exec', exec).ended;
    const resumed = scene.roll('--resume');
    await resumed.untilWritten('a: waits for the command of the earlier run');
    expect(await log()).toEqual(['begin']);
    await writeFile(mayEnd, '');
    expect(await resumed.ended).toMatchObject({ code: 0 });
    expect(await log()).toEqual(['begin', 'end', 'begin', 'end']);
  });

  test.concurrent.each(['before', 'after'] as const)(
    '%s a bad replica is drained again restarts it, and does not take it for a good one',
    async (when) => {
      await using scene = await setUp();
      const { proxy, logPath, log, drainedNames } = scene;
      const exec = `echo {name} >>${logPath}`;
      const isVerdict = (call: string) => isDrain(call) && call.includes('is+worse');
      const reached = proxy.hold(when, isVerdict);
      const rollout = scene.roll('a', '--ramp', '0s', '--exec', exec);
      await using _load = scene.load();
      await reached;
      await rollout.kill();
      expect(await drainedNames()).toEqual(when === 'before' ? [] : ['a']);
      const isAsked = proxy.hold('before', (call) => call.includes('/probe'));
      const resumed = scene.roll('--resume');
      await isAsked;
      await resumed.kill();
      expect(await log()).toEqual(['a', 'a']);
    },
  );

  test.concurrent('after its last replica does not stand in the way of the next one', async () => {
    await using scene = await setUp();
    const isEnd = (call: string) => call.includes('step=rollout&');
    const reached = scene.proxy.hold('before', isEnd);
    const rollout = scene.roll('a', ...QUICK, '--exec', 'true');
    await reached;
    await rollout.kill();
    expect(await scene.roll('b', ...QUICK, '--exec', 'true').ended).toMatchObject({ code: 0 });
  });
});

import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { widthOf } from '#cli/terminal';
import { refusedUrlBeside, startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';
import { invoke, start } from '../invoke.ts';
import { REPLICA, type ScriptedAnswer, startAdmin, TOKEN } from '../scripted-admin.ts';

const WITHOUT_COLOUR = { ...TOKEN, NO_COLOR: '1' };

const CRITICAL = {
  id: 'model_unavailable',
  severity: 'critical',
  subject_kind: 'model',
  subject: 'llama',
  since: '2026-01-01T11:48:00.000Z',
  sentence: 'no replica serves llama: 1 are drained, 2 do not answer',
  remedy: 'Undrain a replica that works. Look at the line `pods not confirmed` of the log.',
};
const WARNING = {
  ...CRITICAL,
  id: 'redis_away',
  severity: 'warning',
  subject_kind: 'fleet',
  subject: '',
  since: '2026-01-01T11:59:30.000Z',
  sentence: 'Redis does not answer',
  remedy: 'Look at Redis.',
};
const NOTICE = { ...WARNING, id: 'gateway_versions_differ', severity: 'notice', sentence: 'versions differ' };

const toOverview = (...conditions: readonly object[]) => ({
  time: '2026-01-01T12:00:00.000Z',
  started_at: '2025-12-31T09:00:00.000Z',
  gateway: { name: 'gw-a', version: '1.2.3' },
  last_minute: { requests_per_s: 20.166 },
  stats: { queued: 10 },
  queue_size: 16_384,
  replicas: [REPLICA, { ...REPLICA, name: 'b', drained: true, inflight: 0 }],
  conditions,
});

const toHead = (url: string) =>
  'gw-a 1.2.3  up 1d  12:00:00 UTC  1 of 2 replicas serving  3 in flight  20.2 requests/s  10 of 16,384 records queued  ' +
  `${url}\n`;

/** A scripted API whose overview has these conditions. */
const startWith = (...conditions: readonly object[]) =>
  startAdmin(() => ({ body: toOverview(...conditions) }));

const UNAUTHORIZED = {
  status: 401,
  body: { error: { message: 'No.', type: 'x', param: null, code: 'unauthorized' } },
};

describe('gateway status', () => {
  it('says which of several gateways refuses', async () => {
    const { url } = await startWith();
    const { url: refusing } = await startAdmin(() => UNAUTHORIZED);
    const { exitCode, stderr } = await invoke(['status', '--admin', url, '--admin', refusing], TOKEN);
    expect([exitCode, stderr]).toEqual([
      3,
      `gateway: the admin API at ${refusing} refused: No. (unauthorized)\n`,
    ]);
  });

  it('prints a head and a line for each condition, in the order of the gateway', async () => {
    const { url, calls } = await startWith(CRITICAL, WARNING);
    expect(await invoke(['status', '--admin', url], TOKEN)).toEqual({
      exitCode: 2,
      stdout:
        toHead(url) +
        'SEVERITY  SUBJECT      WHAT IS WRONG                                            FOR\n' +
        'critical  model llama  no replica serves llama: 1 are drained, 2 do not answer  12m\n' +
        'warning   fleet        Redis does not answer                                    30s\n',
      stderr: '',
    });
    expect(calls).toEqual(['GET /admin/overview?after=999999999999999 Bearer token-1']);
  });

  it('says so if nothing is wrong', async () => {
    const { url } = await startWith();
    const { exitCode, stdout } = await invoke(['status', '--admin', url], TOKEN);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: `${toHead(url)}nothing is wrong\n` });
  });

  it.each([
    ['nothing', [], 0],
    ['a notice', [NOTICE], 0],
    ['a warning', [WARNING, NOTICE], 1],
    ['a critical condition', [CRITICAL, NOTICE], 2],
    ['a severity of a later version', [{ ...NOTICE, severity: 'fatal' }], 2],
  ] as const)('ends for %s with its exit code', async (_, conditions, exitCode) => {
    const { url } = await startWith(...conditions);
    expect(await invoke(['status', '--admin', url], TOKEN)).toMatchObject({ exitCode });
    expect(await invoke(['status', '--json', '--admin', url], TOKEN)).toMatchObject({ exitCode });
  });

  it('says what to do below each condition with --verbose', async () => {
    const remedy = `${CRITICAL.remedy} ${'And look again. '.repeat(8)}`.trim();
    const { url } = await startWith({ ...CRITICAL, remedy }, WARNING);
    const { stdout } = await invoke(['status', '--verbose', '--admin', url], TOKEN);
    expect(stdout.split('\n').slice(2)).toEqual([
      expect.stringMatching(/^critical {2}model llama/),
      '    Undrain a replica that works. Look at the line `pods not confirmed` of the log. And look again.',
      '    And look again. And look again. And look again. And look again. And look again. And look again.',
      '    And look again.',
      expect.stringMatching(/^warning/),
      '    Look at Redis.',
      '',
    ]);
  });

  it('says what to do on a terminal that is wide enough, and fits into any', async () => {
    const { url } = await startWith({ ...CRITICAL, sentence: `${'x'.repeat(90)} ends` }, WARNING);
    const linesAt = async (columns: number) => {
      const terminal = { columns, rows: 50 };
      const { stdout } = await start(['status', '--admin', url], WITHOUT_COLOUR, { terminal }).ended;
      for (const line of stdout.split('\n')) expect(widthOf(line)).toBeLessThanOrEqual(columns);
      return stdout.split('\n');
    };
    expect(await linesAt(100)).toContain('    Look at Redis.');
    const narrow = await linesAt(60);
    expect(narrow).not.toContain('    Look at Redis.');
    expect(narrow).toContainEqual(expect.stringMatching(/^critical {2}x+… {2}12m$/));
  });

  it('has colours on a terminal only', async () => {
    const { url } = await startWith(CRITICAL, WARNING);
    const terminal = { columns: 90, rows: 50 };
    const { stdout } = await start(['status', '--admin', url], TOKEN, { terminal }).ended;
    expect(stdout).toContain('\u001b[31mcritical\u001b[39m');
    expect(stdout).toContain('\u001b[33mwarning\u001b[39m');
    expect((await invoke(['status', '--admin', url], TOKEN)).stdout).not.toContain('\u001b');
  });

  it('shows hostile names and texts on their own line, without an effect on the terminal', async () => {
    const evil = '\u001b[2J\u202eevil\nnothing is wrong\u009b1m';
    const overview = toOverview({ ...CRITICAL, subject: evil, sentence: `${evil} fails`, remedy: evil });
    const body = { ...overview, gateway: { name: evil, version: evil } };
    const { url } = await startAdmin(() => ({ body }));
    const { exitCode, stdout } = await invoke(['status', '--verbose', '--admin', url], TOKEN);
    expect(exitCode).toBe(2);
    expect(stdout.split('\n')).toHaveLength(5);
    for (const control of ['\u001b', '\u009b', '\u202e']) expect(stdout).not.toContain(control);
  });

  it('prints the answer of GET /admin/conditions with --json', async () => {
    const answer = { conditions: [WARNING] };
    const { url, calls } = await startAdmin(() => ({ body: answer }));
    const { exitCode, stdout } = await invoke(['status', '--json', '--admin', url], TOKEN);
    expect([exitCode, JSON.parse(stdout)]).toEqual([1, answer]);
    expect(calls).toEqual(['GET /admin/conditions Bearer token-1']);
  });

  it('counts shadows apart from the replicas that serve', async () => {
    const shadow = {
      ...REPLICA,
      name: 's',
      shadow: { requests: null, since: null, until: null },
      inflight: 4,
    };
    const overview = toOverview();
    const { url } = await startAdmin(() => ({
      body: { ...overview, replicas: [...overview.replicas, shadow] },
    }));
    const { stdout } = await invoke(['status', '--admin', url], TOKEN);
    expect(stdout).toContain('  1 of 2 replicas serving  1 shadow  3 in flight  ');
  });

  it('counts the requests of a replica that was removed, and not the replica', async () => {
    const removed = { ...REPLICA, name: 'r', drained: true, removing: true, inflight: 4 };
    const overview = toOverview();
    const { url } = await startAdmin(() => ({
      body: { ...overview, replicas: [...overview.replicas, removed] },
    }));
    const { stdout } = await invoke(['status', '--admin', url], TOKEN);
    expect(stdout).toContain('  1 of 2 replicas serving  7 in flight  ');
  });

  it('tells of a real gateway what its admin API tells', async () => {
    await using replica = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: refusedUrlBeside(replica) }, replica],
    });
    await gateway.untilLogged('a does not answer');
    const env = { SVC_ADMIN_TOKEN: ADMIN_TOKEN };
    const { exitCode, stdout, stderr } = await invoke(['status', '--admin', gateway.adminUrl], env);
    expect([exitCode, stderr]).toEqual([1, '']);
    expect(stdout).toMatch(/ 1 of 2 replicas serving {2}0 in flight {2}0 requests\/s /);
    expect(stdout).toMatch(/^warning +replica a +a does not answer: connection refused +\d+s$/m);
    expect(stdout).not.toMatch(/undefined|NaN/);
  });
});

describe('gateway status without an answer ends with 3', () => {
  it.each([
    ['the gateway does not answer', null, /^gateway: cannot reach the admin API at /],
    ['it refuses the token', UNAUTHORIZED, /^gateway: the admin API refused: No\. \(unauthorized\)\n$/],
    ['it is another server', { body: { status: 'ok' } }, / does not answer like an admin API \(status 200\)/],
  ] as const)('if %s', async (_, answer: ScriptedAnswer, message) => {
    const { url } = await startAdmin(() => answer);
    for (const more of [[], ['--json'], ['--watch']]) {
      expect(await invoke(['status', ...more, '--admin', url], TOKEN)).toEqual({
        exitCode: 3,
        stdout: '',
        stderr: expect.stringMatching(message),
      });
    }
  });

  it.each([
    ['the command line is wrong', ['--nonsense'], TOKEN],
    ['no gateway is named', [], TOKEN],
    ['there is no token', ['--admin', 'http://127.0.0.1:1'], {}],
    ['the configuration cannot be read', ['-config', '/nowhere/gateway.yaml'], TOKEN],
    ['--interval stands without --watch', ['--interval', '1s', '--admin', 'http://127.0.0.1:1'], TOKEN],
  ] as const)('if %s', async (_, args, env) => {
    expect(await invoke(['status', ...args], env)).toMatchObject({ exitCode: 3, stdout: '' });
  });
});

describe('gateway status of several gateways', () => {
  it('shows each, and ends with the worst', async () => {
    const [a, b] = [await startWith(WARNING), await startWith(CRITICAL)];
    const { exitCode, stdout } = await invoke(['status', '--admin', a.url, '--admin', b.url], TOKEN);
    expect(exitCode).toBe(2);
    const [first, second] = stdout.split('\n\n');
    expect(first).toContain(a.url);
    expect(first).toContain('Redis does not answer');
    expect(second).toContain(b.url);
    expect(second).toContain('no replica serves llama');
  });

  it('shows the others if one gives no answer', async () => {
    const [a, b] = [await startWith(WARNING), await startAdmin(() => null)];
    const args = ['status', '--admin', b.url, '--admin', a.url];
    expect(await invoke(args, TOKEN)).toMatchObject({
      exitCode: 3,
      stdout: expect.stringContaining('Redis does not answer'),
      stderr: expect.stringContaining(`cannot reach the admin API at ${b.url}`),
    });
    expect(JSON.parse((await invoke([...args, '--json'], TOKEN)).stdout)).toEqual({
      gateways: [
        { admin: b.url, error: expect.stringContaining('cannot reach') },
        { admin: a.url, ...toOverview(WARNING) },
      ],
    });
  });
});

describe('gateway status --watch', () => {
  /** Answers in this order; the last one again and again. `looks` counts them. */
  async function startSequence(...answers: readonly ScriptedAnswer[]) {
    const state = { looks: 0 };
    const admin = await startAdmin(() => answers[Math.min(state.looks++, answers.length - 1)] ?? null);
    return { ...admin, state };
  }

  const at = (time: string, ...conditions: readonly object[]) => ({
    body: { ...toOverview(...conditions), time: `2026-01-01T${time}.000Z` },
  });

  it('prints in a pipe only when something begins, ends, or ceases to answer', async () => {
    const { url } = await startSequence(
      at('12:00:00', WARNING),
      at('12:00:02', { ...WARNING, sentence: 'Redis still does not answer' }),
      at('12:00:04', CRITICAL, WARNING),
      null,
      null,
      at('12:00:10'),
      at('12:00:12'),
    );
    const command = start(['status', '--watch', '--interval', '1ms', '--admin', url], TOKEN);
    await command.untilWritten('nothing is wrong');
    command.interrupt();
    const { exitCode, stdout } = await command.ended;
    expect(exitCode).toBe(0);
    const blocks = stdout.trimEnd().split('\n\n');
    expect(blocks.map((block) => /12:00:\d\d|cannot reach/.exec(block)?.[0])).toEqual([
      '12:00:00',
      '12:00:04',
      'cannot reach',
      '12:00:10',
    ]);
    expect(blocks[1]).toContain('no replica serves llama');
  });

  it('returns what the last look says', async () => {
    const { url } = await startWith(CRITICAL);
    const command = start(['status', '--watch', '--interval', '1h', '--admin', url], TOKEN);
    await command.untilWritten('no replica serves llama');
    command.interrupt();
    expect(await command.ended).toMatchObject({ exitCode: 2, stderr: '' });
  });

  it('prints each changed answer as JSON with --json', async () => {
    const { url } = await startSequence({ body: { conditions: [WARNING] } }, { body: { conditions: [] } });
    const command = start(['status', '--watch', '--json', '--interval', '1ms', '--admin', url], TOKEN);
    await command.untilWritten('"conditions": []');
    command.interrupt();
    const { stdout } = await command.ended;
    expect(
      stdout
        .trim()
        .split('\n\n')
        .map((text) => JSON.parse(text)),
    ).toEqual([{ conditions: [WARNING] }, { conditions: [] }]);
  });

  it('updates the screen of a terminal until q, and keeps what it knows of a gateway that does not answer', async () => {
    const { url } = await startSequence(at('12:00:00', WARNING), null);
    const stdin = Object.assign(new PassThrough(), { setRawMode: () => undefined });
    const terminal = { columns: 200, rows: 50 };
    const args = ['status', '--watch', '--interval', '1ms', '--admin', url];
    const command = start(args, WITHOUT_COLOUR, { stdin, terminal });
    await command.untilWritten('cannot reach the admin API');
    stdin.write('q');
    const { exitCode, stdout } = await command.ended;
    expect(exitCode).toBe(3);
    expect(stdout.startsWith('\u001b[?1049h')).toBe(true);
    expect(stdout.endsWith('\u001b[?1049l')).toBe(true);
    const screens = stdout.split('\u001b[J');
    const lost = screens.find((screen) => screen.includes('cannot reach'));
    expect(lost).toContain('Redis does not answer');
  });
});

import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';
import { invoke, start } from '../invoke.ts';
import { REPLICA, type ScriptedAnswer, startAdmin, TOKEN } from '../scripted-admin.ts';

const TERMINAL = { columns: 60, rows: 24 };

const drained = (inflight: number, members: Partial<typeof REPLICA> = {}) => ({
  ...REPLICA,
  drained: true,
  inflight,
  safe_to_stop: inflight === 0,
  ...members,
});

const REFUSED = { status: 404, body: { error: { code: 'replica_not_found', message: 'There is none.' } } };

/** An admin API that answers the drain with the first of these views of the replica, and each poll with the next. */
function startDraining(views: readonly (typeof REPLICA | 'gone' | 'away')[], members: object = {}) {
  let polls = 0;
  return startAdmin(({ method }): ScriptedAnswer => {
    const view = views[Math.min(method === 'POST' ? 0 : ++polls, views.length - 1)];
    if (view === 'away') return null;
    if (method === 'POST') return { body: { replica: view, was_drained: false, ...members } };
    return view === 'gone' ? REFUSED : { body: { replica: view } };
  });
}

const wait = (url: string, ...args: readonly string[]) => [
  'drain',
  'vllm-a',
  '--wait',
  '--admin',
  url,
  ...args,
];

describe('gateway drain and undrain', () => {
  const answered = (inflight: number, was_drained: boolean) => () => ({
    body: { replica: { ...REPLICA, inflight, safe_to_stop: inflight === 0 }, was_drained },
  });

  const ofShadow = () => ({
    body: {
      replica: { ...REPLICA, shadow: { requests: null, since: null, until: null } },
      was_drained: true,
    },
  });

  it.each([
    ['drain', answered(3, false), 'vllm-a is drained: 3 in flight\n'],
    ['drain', answered(0, false), 'vllm-a is drained: nothing in flight\n'],
    ['drain', answered(0, true), 'vllm-a was already drained: nothing in flight\n'],
    ['undrain', answered(0, true), 'vllm-a takes requests again\n'],
    ['undrain', answered(3, false), 'vllm-a takes requests (it was not drained)\n'],
    ['undrain', ofShadow, 'vllm-a gets copies again\n'],
  ])('%s prints the new state of the replica', async (action, answer, said) => {
    const { url, calls } = await startAdmin(answer);
    expect(await invoke([action, 'vllm-a', '--admin', url], TOKEN)).toEqual({
      exitCode: 0,
      stdout: said,
      stderr: '',
    });
    const query = action === 'drain' ? '?unless_last=true' : '';
    expect(calls).toEqual([`POST /admin/replicas/vllm-a/${action}${query} Bearer token-1`]);
  });

  it('says that no ramp begins where nothing was drained', async () => {
    const { url } = await startAdmin(answered(3, false));
    const said = 'vllm-a takes requests (it was not drained, so no ramp begins)\n';
    expect((await invoke(['undrain', 'vllm-a', '--ramp', '60s', '--admin', url], TOKEN)).stdout).toBe(said);
  });

  it.each([
    [{ background: 2, background_unknown: 0 }, 'vllm-a is drained: 2 in the background\n'],
    [
      { inflight: 1, background: 2, background_unknown: 1 },
      'vllm-a is drained: 1 in flight, 2 in the background (not known of 1)\n',
    ],
  ])('says what goes on in the background: %o', async (members, said) => {
    const { url } = await startDraining([drained(0, { ...members, safe_to_stop: false })]);
    expect((await invoke(['drain', 'vllm-a', '--admin', url], TOKEN)).stdout).toBe(said);
  });

  it('a name is one segment of the path, whatever it contains', async () => {
    const { url, calls } = await startAdmin(answered(0, false));
    await invoke(['drain', '../a?b', '--admin', url], TOKEN);
    expect(calls[0]).toContain('/admin/replicas/..%2Fa%3Fb/drain?');
  });

  it.each(['drain', 'undrain'])('%s sends its reason', async (action) => {
    const { url, calls } = await startAdmin(answered(0, false));
    await invoke([action, 'a', '--reason', 'new weights & more', '--admin', url], TOKEN);
    expect(calls[0]).toContain(`/admin/replicas/a/${action}?reason=new+weights+%26+more`);
  });

  it('a warning is printed besides the answer', async () => {
    const { url } = await startDraining([drained(0)], { warning: 'No replica is left\u001b[2J for m.' });
    expect(await invoke(['drain', 'vllm-a', '--admin', url], TOKEN)).toEqual({
      exitCode: 0,
      stdout: 'vllm-a is drained: nothing in flight\n',
      stderr: 'gateway: warning: No replica is left [2J for m.\n',
    });
  });
});

describe('a drain or undrain that a later call has overtaken', () => {
  const warning = 'A later call, perhaps on another gateway, holds instead.';
  it.each(['drain', 'undrain'])('%s prints only the warning, and exits with 1', async (action) => {
    const { url } = await startDraining([REPLICA], { overtaken: true, warning });
    const args = action === 'drain' ? ['drain', 'vllm-a', '--wait'] : ['undrain', 'vllm-a'];
    expect(await invoke([...args, '--admin', url], TOKEN)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `gateway: warning: ${warning}\n`,
    });
    const { exitCode, stdout } = await invoke([...args, '--json', '--admin', url], TOKEN);
    expect([exitCode, JSON.parse(stdout).overtaken]).toEqual([1, true]);
  });
});

describe('gateway drain --wait', () => {
  it('prints a line for each change of the requests in flight, and exits with 0 when the replica is safe to stop', async () => {
    const { url } = await startDraining([drained(3), drained(3), drained(2), drained(0)]);
    expect(await invoke(wait(url), TOKEN)).toEqual({
      exitCode: 0,
      stdout:
        'vllm-a is drained: 3 in flight\nvllm-a: 3 in flight\nvllm-a: 2 in flight\nvllm-a: nothing in flight\n' +
        'vllm-a is safe to stop\n',
      stderr: '',
    });
  });

  it('updates one line in place on a terminal, cut to its width', async () => {
    const { url } = await startDraining([drained(3), drained(2), drained(0)]);
    const { ended } = start(wait(url), TOKEN, { terminal: { columns: 15, rows: 24 } });
    expect((await ended).stdout).toBe(
      'vllm-a is drained: 3 in flight\n\r\u001b[Kvllm-a: 2 in f\r\u001b[Kvllm-a: nothin\nvllm-a is safe to stop\n',
    );
  });

  it('does not wait if nothing is in flight', async () => {
    const { url, calls } = await startDraining([drained(0)]);
    expect(await invoke(wait(url), TOKEN)).toMatchObject({ exitCode: 0 });
    expect(calls).toHaveLength(1);
  });

  it('keeps waiting while the gateway cannot know whether it is safe', async () => {
    const { url } = await startDraining([drained(0, { safe_to_stop: null }), drained(0)]);
    expect(await invoke(wait(url), TOKEN)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('vllm-a is drained: nothing in flight here, but not confirmed yet\n'),
    });
  });

  it('names the gateways of the fleet that it waits for', async () => {
    const members = { safe_to_stop: null, unconfirmed: ['gw-b', 'gw-c'] };
    const { url } = await startDraining([drained(0, members), drained(0)]);
    expect(await invoke(wait(url), TOKEN)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining(
        'vllm-a is drained: nothing known to be in flight, but not confirmed by gw-b, gw-c\n',
      ),
    });
  });

  it('exits with 1 after the timeout, and says that the replica is still drained', async () => {
    const { url } = await startDraining([drained(2)]);
    expect(await invoke(wait(url, '--timeout', '1ms'), TOKEN)).toMatchObject({
      exitCode: 1,
      stderr: 'gateway: not safe to stop after 1ms: vllm-a is still drained, with 2 in flight\n',
    });
  });

  it('exits with 1 on Ctrl-C, at once, and says that the replica is still drained', async () => {
    const { url, calls } = await startDraining([drained(2)]);
    const command = start(wait(url), TOKEN, { terminal: TERMINAL });
    await command.untilWritten('vllm-a: 2 in flight');
    command.interrupt();
    expect(await command.ended).toMatchObject({
      exitCode: 1,
      stderr:
        'gateway: stopped waiting: vllm-a is still drained, with 2 in flight (to undo the drain: gateway undrain vllm-a)\n',
    });
    expect(calls.filter((call) => call.includes('undrain'))).toEqual([]);
  });

  it.each([
    ['undrained', REPLICA, 'vllm-a takes requests again: it was undrained while this command waited'],
    ['removed', 'gone', 'vllm-a is no longer a replica of this gateway'],
  ] as const)('exits with 1 when the replica is %s meanwhile', async (_, view, said) => {
    const { url } = await startDraining([drained(2), view]);
    expect(await invoke(wait(url), TOKEN)).toMatchObject({ exitCode: 1, stderr: `gateway: ${said}\n` });
  });

  it('exits with 0 when the replica is removed meanwhile and was being removed until nothing was in flight', async () => {
    const removing = { ...drained(2), removing: true };
    const { url } = await startDraining([drained(2), removing, 'gone'] as never);
    expect(await invoke(wait(url), TOKEN)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/\nvllm-a is safe to stop\n$/),
    });
    const asJson = await startDraining([removing, 'gone'] as never);
    const { exitCode, stdout } = await invoke(wait(asJson.url, '--json'), TOKEN);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ replica: { inflight: 0, safe_to_stop: true } });
  });

  it('exits with 1 when it is gone after the gateway did not answer: what the one before had in flight is unknown', async () => {
    const { url } = await startDraining([{ ...drained(2), removing: true }, 'away', 'gone'] as never);
    expect(await invoke(wait(url), TOKEN)).toMatchObject({ exitCode: 1 });
  });

  it('waits for the other gateways where the replica is removed from this one', async () => {
    const absent = (inflight: number) => ({
      name: 'vllm-a',
      drained: true,
      inflight,
      safe_to_stop: inflight === 0,
      absent: true,
    });
    const { url } = await startDraining([absent(2), absent(1), absent(0)] as never);
    const { exitCode, stdout } = await invoke(wait(url), TOKEN);
    expect(stdout).toContain('vllm-a: 1 in flight\n');
    expect(stdout.endsWith('vllm-a is safe to stop\n')).toBe(true);
    expect(exitCode).toBe(0);
  });

  it('keeps waiting while the gateway does not answer', async () => {
    const { url } = await startDraining([drained(2), 'away', drained(1), drained(0)]);
    const { exitCode, stdout } = await invoke(wait(url), TOKEN);
    expect(stdout).toContain('vllm-a: the gateway does not answer\nvllm-a: 1 in flight\n');
    expect(exitCode).toBe(0);
  });

  it('prints only the final answer with --json', async () => {
    const { url } = await startDraining([drained(2), drained(0)]);
    const { exitCode, stdout } = await invoke(wait(url, '--json'), TOKEN);
    expect(JSON.parse(stdout)).toEqual({ replica: drained(0), was_drained: false });
    expect(exitCode).toBe(0);
    const busy = await startDraining([drained(2)]);
    const late = await invoke(wait(busy.url, '--json', '--timeout', '1ms'), TOKEN);
    expect(JSON.parse(late.stdout)).toMatchObject({ replica: { inflight: 2, safe_to_stop: false } });
    expect(late.exitCode).toBe(1);
  });
});

describe('a change that is not stored on disk', () => {
  it.each([
    ['drain', []],
    ['undrain', []],
    ['drain', ['--wait']],
    ['undrain', ['--wait']],
  ])('makes %s %j exit with 1 and say so', async (action, options) => {
    const replica = { ...REPLICA, drained: action === 'drain', reachability: 'reachable' };
    const { url } = await startAdmin(() => ({ body: { replica, was_drained: false, stored: false } }));
    expect(await invoke([action, 'vllm-a', ...options, '--admin', url], TOKEN)).toMatchObject({
      exitCode: 1,
      stderr: 'gateway: vllm-a: the change is not stored: a restart of the gateway forgets it\n',
    });
  });
});

describe('a drain of the last replica that answers', () => {
  const error = { code: 'last_replica', message: 'Nothing was drained: no other replica answers for m.' };
  const REFUSAL = `gateway: the admin API refused: ${error.message} (last_replica)\n`;
  /** Refuses the drain unless it is forced. */
  const startLast = () =>
    startAdmin(({ url }) =>
      url?.includes('unless_last') ? { status: 409, body: { error } } : { body: { replica: drained(0) } },
    );
  /** What somebody types at a terminal. */
  const typing = (text: string) => Object.assign(Readable.from([Buffer.from(text)]), { setRawMode() {} });

  it.each([[[]], [['--unless-last']], [['--json']]])(
    'is refused without a terminal, and with %j, which says how to force it',
    async (options) => {
      const { url, calls } = await startLast();
      expect(await invoke(wait(url, '--reason', 'x', ...options), TOKEN)).toEqual({
        exitCode: 1,
        stdout: '',
        stderr: `${REFUSAL}gateway: to drain it anyway: --force\n`,
      });
      expect(calls).toEqual([expect.stringContaining('/drain?reason=x&unless_last=true ')]);
    },
  );

  it.each([
    ['y\n', 0, 2],
    ['n\n', 1, 1],
    ['\n', 1, 1],
    ['', 1, 1],
  ])('asks at a terminal: %j ends with %i', async (typed, exitCode, callCount) => {
    const { url, calls } = await startLast();
    const args = ['drain', 'vllm-a', '--admin', url];
    const { ended } = start(args, TOKEN, { stdin: typing(typed), terminal: TERMINAL });
    const outcome = await ended;
    expect(outcome).toMatchObject({ exitCode, stderr: REFUSAL });
    expect(outcome.stdout).toMatch(/^Drain it anyway\? \[y\/N\] /);
    expect(calls).toHaveLength(callCount);
  });

  it('ends with a signal while it asks', async () => {
    const { url, calls } = await startLast();
    const stdin = Object.assign(new PassThrough(), { setRawMode() {} });
    const command = start(wait(url), TOKEN, { stdin, terminal: TERMINAL });
    await command.untilWritten('[y/N]');
    command.interrupt();
    expect(await command.ended).toMatchObject({ exitCode: 1 });
    expect(calls).toHaveLength(1);
  });

  it('is not asked about with --force, which excludes --unless-last', async () => {
    const { url, calls } = await startLast();
    expect(await invoke(['drain', 'vllm-a', '--force', '--admin', url], TOKEN)).toMatchObject({
      exitCode: 0,
      stderr: '',
    });
    expect(calls).toEqual([expect.stringContaining('/vllm-a/drain ')]);
    expect(await invoke(wait(url, '--force', '--unless-last'), TOKEN)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("options '--force' and '--unless-last' exclude each other"),
    });
  });
});

describe('gateway undrain --wait', () => {
  const absent = { name: 'vllm-a', drained: false, absent: true };
  const undrain = (url: string, ...args: readonly string[]) =>
    invoke(['undrain', 'vllm-a', '--wait', '--admin', url, ...args], TOKEN);

  /** An admin API that answers the undrain with `replica`, and each poll with the next of `polls`. */
  function startReturning(replica: object, polls: readonly (object | 'none' | 'away')[]) {
    let next = 0;
    return startAdmin(({ method }): ScriptedAnswer => {
      if (method === 'POST') return { body: { replica, was_drained: true, stored: true } };
      const poll = polls[Math.min(next++, polls.length - 1)];
      if (poll === 'away') return null;
      if (poll === 'none') return { status: 404, body: { error: { code: 'replica_not_found' } } };
      return { body: { replica: poll } };
    });
  }
  const seen = (reachability: string, drained = false) => ({ ...REPLICA, drained, reachability });

  it('exits with 0 when the replica answers', async () => {
    const { url, calls } = await startReturning(REPLICA, [seen('reachable')]);
    expect(await undrain(url)).toEqual({
      exitCode: 0,
      stdout: 'vllm-a takes requests again\nvllm-a answers\n',
      stderr: '',
    });
    expect(calls[1]).toContain('GET /admin/replicas/vllm-a ');
  });

  it('waits while the replica is unknown or loads its model, and while the gateway does not answer', async () => {
    const polls = ['none', 'away', seen('unreachable'), seen('loading'), seen('reachable')] as const;
    const { url } = await startReturning(absent, polls);
    const { exitCode, stdout } = await undrain(url);
    expect([exitCode, stdout.split('\n')]).toEqual([
      0,
      [
        'vllm-a is undrained, but is not a replica now: it takes requests as soon as it is one',
        'vllm-a is not a replica of this gateway',
        'vllm-a is unknown: the gateway does not answer',
        'vllm-a does not answer',
        'vllm-a is loading its model',
        'vllm-a answers',
        '',
      ],
    ]);
  });

  it.each([
    ['is undrained, but it does not answer', seen('unreachable')],
    [
      'is undrained, but it does not answer (connection refused)',
      { ...seen('unreachable'), reachability_reason: 'connection_refused' },
    ],
    ['is undrained, but it is not a replica of this gateway', 'none'],
    ['was drained again while this command waited', seen('unknown', true)],
  ] as const)('exits with 1 when the replica %s', async (said, poll) => {
    const { url } = await startReturning(REPLICA, [poll]);
    expect(await undrain(url, '--timeout', '1ms')).toMatchObject({
      exitCode: 1,
      stderr: `gateway: vllm-a ${said}\n`,
    });
  });

  it('exits with 1 on Ctrl-C, at once', async () => {
    const { url } = await startReturning(REPLICA, [seen('unreachable')]);
    const command = start(['undrain', 'vllm-a', '--wait', '--admin', url], TOKEN);
    await command.untilWritten('does not answer');
    command.interrupt();
    expect(await command.ended).toMatchObject({
      exitCode: 1,
      stderr: 'gateway: vllm-a is undrained; stopped waiting: it does not answer\n',
    });
  });

  it.each(['drain', 'undrain'])('%s is repeated until the gateway answers', async (action) => {
    let calls = 0;
    const replica = { ...drained(0), drained: action === 'drain', reachability: 'reachable' };
    const { url } = await startAdmin(() =>
      ++calls <= 3 ? null : { body: { replica, was_drained: false, stored: true } },
    );
    const { exitCode, stderr } = await invoke([action, 'vllm-a', '--wait', '--admin', url], TOKEN);
    expect([exitCode, stderr]).toEqual([
      0,
      'gateway: the admin API does not answer: trying again\n'.repeat(3),
    ]);
  });

  it.each(['drain', 'undrain'])('%s gives up after the timeout', async (action) => {
    const { url } = await startAdmin(() => null);
    const args = [action, 'vllm-a', '--wait', '--timeout', '2s', '--admin', url];
    expect(await invoke(args, TOKEN)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/trying again\n(.*\n)*gateway: cannot reach the admin API/),
    });
  });

  it('prints only the final answer with --json', async () => {
    const { url } = await startReturning(absent, ['none', seen('reachable')]);
    const { exitCode, stdout } = await undrain(url, '--json');
    expect([exitCode, JSON.parse(stdout)]).toEqual([
      0,
      { replica: seen('reachable'), was_drained: true, stored: true },
    ]);
  });
});

it('a real gateway drains a replica with a request in flight, and the command waits for it', async () => {
  await using replica = await startFakeReplica({ name: 'a', script: hang });
  await using gateway = await startGateway({ replicas: [replica] });
  const leave = new AbortController();
  const left = gateway.chat({}, { signal: leave.signal }).catch(() => undefined);
  await replica.untilRequests(1);

  const command = start(
    ['drain', 'a', '--wait', '--force', '--reason', 'test', '--admin', gateway.adminUrl],
    { SVC_ADMIN_TOKEN: ADMIN_TOKEN },
  );
  await command.untilWritten('a: 1 in flight\n');
  leave.abort();
  await left;

  expect(await command.ended).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('No replica') });
  expect(command.output).toMatch(/a: nothing in flight\na is safe to stop\n$/);
  expect(await gateway.replicas()).toMatchObject([{ drained: true, reason: 'test', safe_to_stop: true }]);
});

import { describe, expect, test } from 'vitest';
import { invoke } from '../invoke.ts';
import { startAdmin, TOKEN } from '../scripted-admin.ts';

const ANSWER = {
  verdict: 'good',
  sentence: 'is as good as its peers: gaps ×1.01, 0 % errors, 700 requests',
  summary: 'gaps ×1.01, 0 % errors, 700 requests',
  reasons: [],
  requests: 700,
  figures: { requests: 700, gaps_ratio: 1.01 },
  candidate: ['a'],
  baseline: ['b', 'c'],
  since: '2026-01-31T12:00:00.000Z',
  from: '2026-01-31T12:00:00.000Z',
  until: '2026-01-31T12:05:00.000Z',
  complete: true,
  gateways: 1,
};

/** Starts an admin API with this answer. */
const startWith = (members: object) => startAdmin(() => ({ body: { ...ANSWER, ...members } }));

describe('gateway verdict', () => {
  test.each([
    ['good', 0],
    ['bad', 3],
    ['undecided', 4],
  ])('ends with the exit code of the verdict: %s %i', async (verdict, exitCode) => {
    const { url, calls } = await startWith({ verdict });
    const outcome = await invoke(['verdict', 'a', 'b,c', '--admin', url], TOKEN);
    expect(outcome).toMatchObject({ exitCode, stderr: '' });
    expect(outcome.stdout).toBe(
      'a is as good as its peers: gaps ×1.01, 0 % errors, 700 requests\n' +
        'requests from 2026-01-31T12:00:00Z to 2026-01-31T12:05:00Z; a beside b, c\n',
    );
    expect(calls).toEqual([
      'GET /admin/verdict?candidate=a&baseline=b%2Cc&false_alarm=0.001000000000&missed=0.050000000000 Bearer token-1',
    ]);
  });

  test('says that older requests than those that it knows were asked for', async () => {
    const { url } = await startWith({ complete: false, since: '2026-01-31T11:00:00.000Z' });
    const { stdout } = await invoke(
      ['verdict', 'a', '--since', '2026-01-31T12:00+01:00', '--admin', url],
      TOKEN,
    );
    expect(stdout).toContain('; those since 2026-01-31T11:00:00Z are asked for, but not kept; a beside');
  });

  test('says which of several gateways refuses', async () => {
    const { url } = await startWith({});
    const error = { message: 'No.', type: 'x', param: null, code: 'unauthorized' };
    const { url: refusing } = await startAdmin(() => ({ status: 401, body: { error } }));
    const { stderr } = await invoke(['verdict', 'a', '--admin', url, '--admin', refusing], TOKEN);
    expect(stderr).toBe(`gateway: the admin API at ${refusing} refused: No. (unauthorized)\n`);
  });

  test('says of how many gateways of a fleet the requests are', async () => {
    const { url } = await startWith({ gateways: 3 });
    const { stdout } = await invoke(['verdict', 'a', '--admin', url], TOKEN);
    expect(stdout).toContain('requests of 3 gateways from 2026-01-31T12:00:00Z to');
  });

  test('prints the answer itself with --json', async () => {
    const { url } = await startWith({});
    const { stdout } = await invoke(['verdict', 'a', '--json', '--admin', url], TOKEN);
    expect(JSON.parse(stdout)).toEqual(ANSWER);
  });

  test('with --wait it asks until it is decided, always since the same time', async () => {
    let count = 0;
    const { url, calls } = await startAdmin(() => {
      count++;
      return { body: { ...ANSWER, verdict: count < 3 ? 'undecided' : 'bad' } };
    });
    const args = ['verdict', 'a', '--wait', '30s', '--since', '10m', '--admin', url];
    expect(await invoke(args, TOKEN)).toMatchObject({ exitCode: 3 });
    expect(calls).toHaveLength(3);
    expect(new Set(calls).size).toBe(1);
  });

  test.each([
    [['good', 'undecided'], 0],
    [['good', 'bad'], 3],
    [['undecided', 'undecided'], 4],
  ])('of several gateways, bad decides, then good: %j %i', async (verdicts, exitCode) => {
    const gateways = await Promise.all(verdicts.map((verdict) => startWith({ verdict })));
    const admins = gateways.flatMap(({ url }) => ['--admin', url]);
    expect(await invoke(['verdict', 'a', ...admins], TOKEN)).toMatchObject({ exitCode });
    // The probability of a wrong verdict is divided among them.
    for (const { calls } of gateways) expect(calls[0]).toContain('false_alarm=0.000500000000');
  });

  test('no answer, and a refusal, is no verdict', async () => {
    const error = { code: 'replica_not_found', message: 'No replica has this name.', type: '', param: null };
    const { url } = await startAdmin(() => ({ status: 404, body: { error } }));
    expect(await invoke(['verdict', 'x', '--admin', url], TOKEN)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('No replica has this name.'),
    });
    expect(await invoke(['verdict', 'x', '--admin', 'http://127.0.0.1:9'], TOKEN)).toMatchObject({
      exitCode: 1,
    });
  });

  test('what comes from elsewhere cannot write to the terminal', async () => {
    const { url } = await startWith({ sentence: 'is\u001b[2J\nfine', candidate: ['a\u0007'] });
    const { stdout } = await invoke(['verdict', 'a', '--admin', url], TOKEN);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: there must be none.
    expect(stdout.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f]/);
    expect(stdout.trim().split('\n')).toHaveLength(2);
  });

  test.each([
    [[], 'CANDIDATE is missing'],
    [['a', 'b', 'c'], 'unexpected argument "c"'],
    [['a', '--since', 'yesterday'], "option '--since' needs a time"],
    [['a', '--wait', 'long'], "option '--wait' needs a duration"],
  ])('%j is a wrong command line', async (args, problem) => {
    const outcome = await invoke(['verdict', ...args, '--admin', 'http://127.0.0.1:9'], TOKEN);
    expect(outcome).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(problem) });
  });
});

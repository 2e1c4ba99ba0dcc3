import { describe, expect, it } from 'vitest';
import { widthOf } from '#cli/terminal';
import { answerJson, startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';
import { invoke, start } from '../invoke.ts';
import { type ScriptedAnswer, startAdmin, TOKEN } from '../scripted-admin.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

const RECORD = {
  request_id: 'r-1',
  trace_id: TRACE,
  ts: '2026-01-01T12:00:00.123Z',
  replica: 'vllm-a',
  model: 'llama',
  endpoint: '/v1/chat/completions',
  tenant: 'acme',
  prompt_tokens: 1200,
  completion_tokens: 32,
  ttft_ms: 81.25,
  e2e_ms: 714.832,
  gpu_seconds: 5.718656,
  cost: 0.0039553,
  currency: 'EUR',
  status: 200,
  stream: true,
  route_reason: 'turn',
  route_candidates: 3,
};

const FIRST_RUN = '2026-01-01T00:00:00.000Z';
const toAnswer = (records: readonly object[], last_record: number, started_at = FIRST_RUN) => ({
  body: { records, last_record, started_at },
});

describe('gateway records', () => {
  it('prints the latest records as aligned lines, oldest first', async () => {
    const failed = {
      ...RECORD,
      ts: '2026-01-01T12:00:01.000Z',
      status: 503,
      error_type: 'upstream_failed',
      replica: 'a-replica-with-a-long-name',
      ttft_ms: undefined,
      tenant: undefined,
      attempts: 2,
      gpu_seconds: 61.03,
      cost: undefined,
      route_reason: 'only_candidate',
      route_candidates: undefined,
      route_ruled_out: { drained: 2 },
    };
    const { url, calls } = await startAdmin(() => toAnswer([failed, RECORD], 2));
    expect(await invoke(['records', '--admin', url], TOKEN)).toEqual({
      exitCode: 0,
      stdout: [
        'TIME (UTC)    STATUS  REPLICA                     MODEL         TENANT    ENDPOINT         IN    OUT      TTFT        E2E      GPU        COST  WHY                        TRACE                             ERROR',
        `12:00:00.123     200  vllm-a                      llama         acme      chat          1,200     32     81 ms     715 ms  5.719 s  0.0040 EUR  turn of 3                  ${TRACE}`,
        `12:00:01.000     503  a-replica-with-a-long-name  llama         -         chat          1,200     32         -     715 ms   61.0 s           -  only_candidate, 2 drained  ${TRACE}  upstream_failed, 2 attempts`,
        '',
      ].join('\n'),
      stderr: '',
    });
    expect(calls).toEqual(['GET /admin/records?limit=20&after=0 Bearer token-1']);
  });

  it('shows times in the zone that is asked for, and says which', async () => {
    const { url } = await startAdmin(() => toAnswer([RECORD], 1));
    const { stdout } = await invoke(['records', '--time-zone', 'Asia/Tokyo', '--admin', url], TOKEN);
    expect(stdout).toMatch(/^TIME \(Asia\/Tokyo\) +STATUS .*\n2026-01-01 21:00:00 +200 /);
  });

  it.each([null, 80])('names the limit that refused a request, also in %s columns', async (columns) => {
    const refused = { ...RECORD, status: 429, error_type: 'rate_limit_exceeded', attempts: undefined };
    const answer = toAnswer([{ ...refused, refused_by: 'client.requests_per_minute' }], 1);
    const { url } = await startAdmin(() => answer);
    const terminal = columns === null ? {} : { terminal: { columns, rows: 50 } };
    const { stdout } = await start(['records', '--admin', url], { ...TOKEN, NO_COLOR: '1' }, terminal).ended;
    const cell =
      columns === null ? 'client.requests_per_minute, rate_limit_exceeded' : 'client.requests_per_mi…';
    expect(stdout.trimEnd().split('  ').at(-1)).toBe(cell);
  });

  it.each([
    [1, 'prefix, 1 block'],
    [3, 'prefix, 3 blocks'],
  ])('says how long the prefix was by which the replica was chosen: %s', async (blocks, why) => {
    const record = {
      ...RECORD,
      route_reason: 'prefix',
      route_candidates: undefined,
      route_prefix_blocks: blocks,
    };
    const { url } = await startAdmin(() => toAnswer([record], 1));
    const { stdout } = await invoke(['records', '--admin', url], TOKEN);
    expect(stdout).toContain(`  ${why}  ${TRACE}`);
  });

  it('passes its filters on', async () => {
    const { url, calls } = await startAdmin(() => toAnswer([], 0));
    const filters = ['--failed', '--replica', 'a b', '--model', 'm', '--tenant', 't', '--status', '5xx'];
    const { stdout } = await invoke(['records', '-n', '7', ...filters, '--admin', url], TOKEN);
    expect(stdout).toBe('no records\n');
    expect(calls).toEqual([
      'GET /admin/records?replica=a+b&model=m&tenant=t&status=5xx&failed=true&limit=7&after=0 Bearer token-1',
    ]);
  });

  it('prints one JSON object per line with --json, and nothing if there is none', async () => {
    const { url } = await startAdmin(() => toAnswer([{ ...RECORD, status: 404 }, RECORD], 2));
    const { stdout } = await invoke(['records', '--json', '--admin', url], TOKEN);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual([RECORD, { ...RECORD, status: 404 }]);
    const quiet = await startAdmin(() => toAnswer([], 0));
    expect(await invoke(['records', '--json', '--admin', quiet.url], TOKEN)).toMatchObject({ stdout: '' });
  });

  it('paints lines by status, on a terminal only', async () => {
    const records = [200, 404, 499, 502].map((status) => ({ ...RECORD, status }));
    const { url } = await startAdmin(() => toAnswer(records.toReversed(), 4));
    const args = ['records', '--admin', url];
    const terminal = { columns: 200, rows: 50 };
    const { stdout } = await start(args, TOKEN, { terminal }).ended;
    const painted = stdout.trimEnd().split('\n').slice(1);
    expect(painted.map((line) => line.slice(0, 5))).toEqual([
      '12:00',
      '\u001b[33m',
      '\u001b[2m1',
      '\u001b[31m',
    ]);
    expect((await invoke(args, TOKEN)).stdout).not.toContain('\u001b');
    expect((await start(args, { ...TOKEN, NO_COLOR: '1' }, { terminal }).ended).stdout).not.toContain(
      '\u001b',
    );
  });

  it('shows no control characters of hostile names', async () => {
    const hostile = { ...RECORD, model: '\u001b[2Jm\nodel', tenant: `${'x'.repeat(90)}` };
    const { url } = await startAdmin(() => toAnswer([hostile], 1));
    const { stdout } = await invoke(['records', '--admin', url], TOKEN);
    expect(stdout.split('\n')).toHaveLength(3);
    expect(stdout).not.toContain('\u001b');
    expect(stdout).toContain(` ${'x'.repeat(90)} `);
  });

  const LONG = {
    ...RECORD,
    replica: `vllm-${'a'.repeat(60)}-x2k4p`,
    model: `${'組織/'.repeat(30)}qwen3-235b`,
    tenant: `${'x'.repeat(90)}-9`,
    status: 503,
    error_type: 'upstream_failed',
    attempts: 2,
  };

  it.each([80, 120, 200])(
    'fits into %i columns: names lose their middle, and no half of a trace is shown',
    async (columns) => {
      const { url } = await startAdmin(() => toAnswer([LONG, RECORD], 2));
      const terminal = { columns, rows: 50 };
      const { stdout } = await start(['records', '--admin', url], { ...TOKEN, NO_COLOR: '1' }, { terminal })
        .ended;
      const lines = stdout.trimEnd().split('\n');
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns);
      const [head = '', , long = ''] = lines;
      for (const name of ['TIME', 'STATUS', 'REPLICA', 'MODEL', 'ERROR']) expect(head).toContain(name);
      expect(long).toMatch(/ vllm-a*…a*-?x2k4p /);
      expect(long).toMatch(/ 組織\S*….*235b /);
      expect(long.includes(TRACE)).toBe(head.includes('TRACE'));
      expect(long.includes(TRACE)).toBe(columns === 200);
    },
  );

  it('shows everything with --wide', async () => {
    const { url } = await startAdmin(() => toAnswer([LONG, RECORD], 2));
    const terminal = { columns: 80, rows: 50 };
    const env = { ...TOKEN, NO_COLOR: '1' };
    const { stdout } = await start(['records', '--wide', '--admin', url], env, { terminal }).ended;
    expect(stdout).toBe((await invoke(['records', '--admin', url], TOKEN)).stdout);
    expect(stdout).toContain(LONG.model);
  });
});

describe('gateway records --follow', () => {
  it('shows the heads again when longer values leave out a column', async () => {
    const answers = [
      toAnswer([RECORD], 1),
      toAnswer([{ ...RECORD, error_type: 'upstream_failed', attempts: 2 }], 2),
    ];
    const { url } = await startAdmin(() => answers.shift() ?? toAnswer([], 2));
    const terminal = { columns: 155, rows: 50 };
    const env = { ...TOKEN, NO_COLOR: '1' };
    const args = ['records', '-f', '--interval', '1ms', '--admin', url];
    const command = start(args, env, { terminal });
    await command.untilWritten('…');
    command.interrupt();
    const { stdout } = await command.ended;
    const heads = stdout.split('\n').filter((line) => line.startsWith('TIME'));
    expect(heads.map((line) => line.includes('GPU'))).toEqual([true, false]);
  });

  const follow = (url: string, ...more: string[]) =>
    start(['records', '-f', '--interval', '1ms', '--json', ...more, '--admin', url], TOKEN);
  const numbered = (id: number) => ({ ...RECORD, request_id: `r-${id}` });
  const idsIn = (stdout: string) =>
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { readonly request_id: string }).request_id);

  it('goes on after a gateway that did not answer, and from the first record of one that restarted', async () => {
    const secondRun = '2026-01-01T13:00:00.000Z';
    const answers: ScriptedAnswer[] = [
      toAnswer([numbered(2), numbered(1)], 2),
      toAnswer([numbered(3)], 3),
      null,
      null,
      // The new run has more records than the old one.
      toAnswer([numbered(14)], 4, secondRun),
      toAnswer([14, 13, 12, 11].map(numbered), 4, secondRun),
    ];
    const { url, calls } = await startAdmin(() =>
      answers.length > 0 ? (answers.shift() ?? null) : toAnswer([], 4, secondRun),
    );
    const command = follow(url);
    await command.untilWritten('r-14');
    command.interrupt();
    const { exitCode, stdout, stderr } = await command.ended;
    expect(exitCode).toBe(0);
    expect(idsIn(stdout)).toEqual(['r-1', 'r-2', 'r-3', 'r-11', 'r-12', 'r-13', 'r-14']);
    expect(stderr).toMatch(
      /^gateway: cannot reach the admin API at [^\n]*: trying again\ngateway: the gateway answers again\n$/,
    );
    expect(calls.slice(0, 6).map((call) => / \S*after=(\d+) /.exec(call)?.[1])).toEqual([
      '0',
      '2',
      '3',
      '3',
      '3',
      '0',
    ]);
  });

  it('says how many records came too quickly', async () => {
    const answers = [toAnswer([], 10), toAnswer([numbered(900)], 900)];
    const { url } = await startAdmin(() => answers.shift() ?? toAnswer([], 900));
    const command = follow(url);
    await command.untilWritten('r-900');
    command.interrupt();
    expect((await command.ended).stderr).toBe('gateway: 889 records came too quickly to be shown\n');
  });

  it('ends with 1 if the gateway refuses', async () => {
    const error = { message: 'No.', type: 'x', param: null, code: 'unauthorized' };
    const answers: ScriptedAnswer[] = [toAnswer([], 0)];
    const { url } = await startAdmin(() => answers.shift() ?? { status: 401, body: { error } });
    expect(await follow(url).ended).toMatchObject({
      exitCode: 1,
      stderr: 'gateway: the admin API refused: No. (unauthorized)\n',
    });
  });

  it('shows the failures of a real gateway as they come', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [{ ...replica, gpu_count: 8 }] });
    const args = ['records', '-f', '--failed', '--interval', '1ms', '--admin', gateway.adminUrl];
    const command = start(args, { SVC_ADMIN_TOKEN: ADMIN_TOKEN });
    await (await gateway.chat()).text();
    replica.answerOnce(answerJson({ error: 'no' }, { status: 400 }));
    await (await gateway.chat()).text();
    await command.untilWritten(' 400  a ');
    command.interrupt();
    const { stdout } = await command.ended;
    expect(stdout.trimEnd().split('\n')).toHaveLength(2);
    expect(stdout).toMatch(/ [\d.]+ ms +[\d.]+ s +- {2}only_candidate {2}[0-9a-f]{32}/);
  });
});

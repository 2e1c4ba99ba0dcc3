import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { widthOf } from '#cli/terminal';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';
import { invoke, start } from '../invoke.ts';
import { REPLICA, type ScriptedAnswer, startAdmin, TOKEN } from '../scripted-admin.ts';

const TRAFFIC = {
  requests: 1210,
  errors: 2,
  client_errors: 24,
  requests_per_s: 20.166,
  output_tokens_per_s: 1250.4,
  ttft_p50_ms: 80.2,
  ttft_p95_ms: 140.9,
  latency_p50_ms: 900,
  latency_p95_ms: 12_345,
};

const QUIET = {
  ...TRAFFIC,
  requests: 0,
  errors: 0,
  client_errors: 0,
  requests_per_s: 0,
  output_tokens_per_s: 0,
  ttft_p50_ms: null,
  ttft_p95_ms: null,
  latency_p50_ms: null,
  latency_p95_ms: null,
};

const WITHOUT_COLOUR = { ...TOKEN, NO_COLOR: '1' };

const OVERVIEW = {
  conditions: [],
  time: '2026-01-01T12:00:00.000Z',
  started_at: '2025-12-31T09:00:00.000Z',
  gateway: { name: 'gpu-gateway', version: '1.2.3' },
  last_minute: TRAFFIC,
  stats: { recorded: 1210, exported: 1200, queued: 10, dropped: 0, rejected: 0, failed_calls: 1 },
  collector: { state: 'taking' },
  replicas: [
    { ...REPLICA, last_minute: TRAFFIC },
    {
      ...REPLICA,
      name: 'b',
      drained: true,
      since: '2026-01-01T11:48:00.000Z',
      inflight: 0,
      last_minute: QUIET,
    },
  ],
};

const toHead = (url: string, view = 'by replica, sorted by inflight') =>
  `gpu-gateway 1.2.3  up 1d  12:00:00 UTC  ${url}\n` +
  'last minute  20.2 requests/s  1,250 output tokens/s  2 (0.2 %) errors  24 (2 %) 4xx\n' +
  'records  1,210 recorded  1,200 exported  10 queued  0 dropped  0 rejected  1 failed call; collector is accepting records\n' +
  `${view}\n`;

const TABLE = [
  'NAME    STATE        INFLIGHT  REQ/S     ERRORS       4XX  TOKENS/S  TTFT P50  TTFT P95  E2E P50  E2E P95',
  'vllm-a  serving             3   20.2  2 (0.2 %)  24 (2 %)     1,250     80 ms    141 ms   900 ms   12.3 s',
  'b       drained 12m         0      0          0         0         0         -         -        -        -',
];

const toOverview = (url: string) => `${toHead(url)}\n${TABLE.join('\n')}\n`;

/** A keyboard that records its changes of mode. */
function createKeyboard() {
  const keys = new PassThrough();
  const modes: boolean[] = [];
  return Object.assign(keys, { modes, setRawMode: (isRaw: boolean) => modes.push(isRaw) });
}

describe('gateway top without a terminal, or with --once', () => {
  it('prints the overview once and exits', async () => {
    const { url, calls } = await startAdmin(() => ({ body: OVERVIEW }));
    expect(await invoke(['top', '--admin', url], TOKEN)).toEqual({
      exitCode: 0,
      stdout: toOverview(url),
      stderr: '',
    });
    expect(calls).toEqual(['GET /admin/overview?after=999999999999999 Bearer token-1']);
    const terminal = { columns: 200, rows: 50 };
    const { ended } = start(['top', '--once', '--admin', url], WITHOUT_COLOUR, { terminal });
    expect((await ended).stdout).toBe(toOverview(url));
  });

  it('does not speak of a collector if records are written to files', async () => {
    const { url } = await startAdmin(() => ({ body: { ...OVERVIEW, export_to: 'file' } }));
    const { stdout } = await invoke(['top', '--admin', url], TOKEN);
    expect(stdout).toContain('1 failed call; written to files\n');
  });

  it('has a column for the cost if that of a row is known', async () => {
    const [first, second] = OVERVIEW.replicas;
    const withCost = { ...first, last_minute: { ...TRAFFIC, cost: 12.5, currency: 'EUR' } };
    const overview = { ...OVERVIEW, replicas: [withCost, second] };
    const { url } = await startAdmin(() => ({ body: overview }));
    const { stdout } = await invoke(['top', '--admin', url], TOKEN);
    const [head, one, other] = stdout.split('\n').slice(-4);
    expect(head).toBe(`${TABLE[0]}       COST`);
    expect(one).toBe(`${TABLE[1]}  12.50 EUR`);
    expect(other).toBe(`${TABLE[2]}          -`);
  });

  it('has a column for the GPU time if that of a row is known', async () => {
    const [first, second] = OVERVIEW.replicas;
    const withGpuTime = { ...first, last_minute: { ...TRAFFIC, gpu_seconds: 95.4 } };
    const overview = { ...OVERVIEW, replicas: [withGpuTime, second] };
    const { url } = await startAdmin(() => ({ body: overview }));
    const { stdout } = await invoke(['top', '--admin', url], TOKEN);
    const [head, one, other] = stdout.split('\n').slice(-4);
    expect(head).toBe(`${TABLE[0]}  GPU TIME`);
    expect(one).toBe(`${TABLE[1]}    95.4 s`);
    expect(other).toBe(`${TABLE[2]}         -`);
  });

  it('shows the errors of a replica among its attempts, which have a column where some failed', async () => {
    const [first, second] = OVERVIEW.replicas;
    const hidden = {
      ...QUIET,
      attempts: 60,
      attempts_per_s: 1,
      requests: 42,
      requests_per_s: 0.7,
      errors: 18,
    };
    const answered = { ...TRAFFIC, attempts: 1210, attempts_per_s: 20.166 };
    const overview = {
      ...OVERVIEW,
      replicas: [
        { ...first, last_minute: answered },
        { ...second, last_minute: hidden },
      ],
    };
    const { url } = await startAdmin(() => ({ body: overview }));
    const { stdout } = await invoke(['top', '--admin', url], TOKEN);
    const [head, one, other] = stdout.split('\n').slice(-4);
    expect(head).toMatch(/ INFLIGHT {2}ATTEMPTS\/S {2}REQ\/S +ERRORS /);
    expect(one).toMatch(/ 3 +20\.2 +20\.2 +2 \(0\.2 %\) /);
    expect(other).toMatch(/ 0 +1 +0\.7 +18 \(30 %\) /);
  });

  it('prints its data with --json', async () => {
    const { url } = await startAdmin(() => ({ body: OVERVIEW }));
    const { stdout } = await invoke(['top', '--json', '--admin', url], TOKEN);
    expect(JSON.parse(stdout)).toEqual(OVERVIEW);
  });

  it('reads the overview of a real gateway', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica] });
    await (await gateway.chat()).text();
    await gateway.waitForRecords(1);
    const env = { SVC_ADMIN_TOKEN: ADMIN_TOKEN };
    const { stdout } = await invoke(['top', '--admin', gateway.adminUrl], env);
    expect(stdout).toMatch(/^records {2}1 recorded {2}\d exported/m);
    expect(stdout).toMatch(/^a {5}serving(?: +[\d.]+){5}(?: +-){2}(?: +\d+ ms){2}$/m);
    expect(stdout).not.toMatch(/undefined|NaN/);
  });
});

describe('gateway top on a terminal', () => {
  const terminal = { columns: 40, rows: 6 };
  const TAKEN = '\u001b[?1049h\u001b[?25l';
  const GIVEN_BACK = '\u001b[?25h\u001b[?1049l';

  it.each([
    ['q', 'q'],
    ['Ctrl-C, which is an ordinary key in raw mode', '\u0003'],
  ])('updates the screen in place, cut to its size, until %s', async (_, key) => {
    let looks = 0;
    const { url } = await startAdmin(() => {
      looks++;
      return { body: { ...OVERVIEW, time: `2026-01-01T12:00:0${Math.min(looks, 9)}.000Z` } };
    });
    const stdin = createKeyboard();
    const command = start(['top', '--interval', '1ms', '--admin', url], WITHOUT_COLOUR, { stdin, terminal });
    await command.untilWritten('12:00:03');
    expect(stdin.modes).toEqual([true]);
    stdin.write('x');
    stdin.write(key);

    const { exitCode, stdout } = await command.ended;
    expect(exitCode).toBe(0);
    expect(stdin.modes).toEqual([true, false]);
    expect(stdout.startsWith(TAKEN)).toBe(true);
    expect(stdout.endsWith(GIVEN_BACK)).toBe(true);
    const [first = ''] = stdout.slice(TAKEN.length).split('\u001b[J');
    const heads = 'NAME    STATE        INFLIGHT     ERRORS';
    const text = `${toHead(url).trimEnd()}    keys: s sort, b by, q quit\n\n${heads}`;
    const lines = text.replace('12:00:00', '12:00:01').split('\n');
    expect(first).toBe(`\u001b[H${lines.map((line) => `${line.slice(0, 40)}\u001b[K`).join('\r\n')}`);
  });

  it('shows 24 lines of 80 characters on a terminal that says that it has none', async () => {
    const { url } = await startAdmin(() => ({ body: OVERVIEW }));
    const sizeless = { columns: 0, rows: 0 };
    const command = start(['top', '--interval', '1h', '--admin', url], WITHOUT_COLOUR, {
      terminal: sizeless,
    });
    await command.untilWritten('up 1d');
    command.interrupt();
    await command.ended;
  });

  it('ends with a signal if it has no keyboard', async () => {
    const { url } = await startAdmin(() => ({ body: OVERVIEW }));
    const command = start(['top', '--admin', url], TOKEN, { terminal });
    await command.untilWritten('up 1d');
    command.interrupt();
    expect(await command.ended).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(GIVEN_BACK) });
  });

  it('keeps the last overview while the gateway does not answer, and says so', async () => {
    let looks = 0;
    const { url } = await startAdmin(
      (): ScriptedAnswer => (++looks === 1 || looks > 4 ? { body: OVERVIEW } : null),
    );
    const wide = { columns: 200, rows: 50 };
    const command = start(['top', '--interval', '1ms', '--admin', url], TOKEN, { terminal: wide });
    await command.untilWritten('cannot reach the admin API');
    const [, second = ''] = command.output.split('\u001b[J');
    expect(second).toContain('vllm-a  serving');
    command.interrupt();
    expect(await command.ended).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('restores the screen and exits with 1 when the gateway refuses', async () => {
    let looks = 0;
    const { url } = await startAdmin((): ScriptedAnswer => {
      if (++looks === 1) return { body: OVERVIEW };
      return {
        status: 401,
        body: { error: { message: 'No.', type: 'x', param: null, code: 'unauthorized' } },
      };
    });
    const { ended } = start(['top', '--interval', '1ms', '--admin', url], TOKEN, { terminal });
    expect(await ended).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining(GIVEN_BACK),
      stderr: 'gateway: the admin API refused: No. (unauthorized)\n',
    });
  });
});

describe('the rows of gateway top', () => {
  const traffic = (requests: number, errors: number, p95: number | null) => ({
    ...QUIET,
    requests,
    errors,
    requests_per_s: requests / 60,
    latency_p95_ms: p95,
  });
  const ROWS = {
    ...OVERVIEW,
    replicas: [
      {
        ...REPLICA,
        name: 'vllm-10',
        inflight: 1,
        last_minute: { ...traffic(100, 0, 50), client_errors: 20 },
      },
      { ...REPLICA, name: 'vllm-2', inflight: 1, last_minute: traffic(10, 3, null) },
      { ...REPLICA, name: 'a', inflight: 4, last_minute: traffic(50, 1, 900) },
    ],
    models: [
      { name: 'llama', last_minute: traffic(3, 0, 10) },
      { name: '_OTHER', last_minute: traffic(40, 1, 20) },
    ],
    tenants: [],
  };

  /** The names in the first column. */
  const namesIn = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .slice(6)
      .map((line) => line.split(' ')[0]);

  it.each([
    ['inflight', ['a', 'vllm-2', 'vllm-10']],
    ['errors', ['vllm-2', 'a', 'vllm-10']],
    ['requests', ['vllm-10', 'a', 'vllm-2']],
    ['latency', ['a', 'vllm-10', 'vllm-2']],
    ['name', ['a', 'vllm-2', 'vllm-10']],
  ])('are sorted by %s', async (sort, names) => {
    const { url } = await startAdmin(() => ({ body: ROWS }));
    const { stdout } = await invoke(['top', '--sort', sort, '--admin', url], TOKEN);
    expect(namesIn(stdout)).toEqual(names);
  });

  it('are models or tenants if they are asked for', async () => {
    const { url } = await startAdmin(() => ({ body: ROWS }));
    const { stdout } = await invoke(['top', '--by', 'model', '--admin', url], TOKEN);
    expect(stdout).toContain('\nby model, sorted by requests\n\nNAME    REQ/S     ERRORS  4XX ');
    expect(namesIn(stdout)).toEqual(['_OTHER', 'llama']);
    const tenants = await invoke(['top', '--by', 'tenant', '--admin', url], TOKEN);
    expect(tenants.stdout).toMatch(/\n\nno requests with a tenant in the last minute\n$/);
  });

  it('are of a real gateway, by tenant', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica] });
    await (await gateway.chat({}, { headers: { 'X-Tenant': 'acme' } })).text();
    await gateway.waitForRecords(1);
    const env = { SVC_ADMIN_TOKEN: ADMIN_TOKEN };
    const { stdout } = await invoke(['top', '--by', 'tenant', '--admin', gateway.adminUrl], env);
    expect(namesIn(stdout)).toEqual(['acme']);
  });

  it('change with the keys s and b while it runs', async () => {
    const { url } = await startAdmin(() => ({ body: ROWS }));
    const stdin = createKeyboard();
    const terminal = { columns: 200, rows: 50 };
    const command = start(['top', '--interval', '1h', '--admin', url], TOKEN, { stdin, terminal });
    await command.untilWritten('by replica, sorted by inflight');
    stdin.write('s');
    await command.untilWritten('by replica, sorted by errors');
    stdin.write('\u001b[A');
    stdin.write('b');
    await command.untilWritten('by model, sorted by errors');
    stdin.write('q');
    expect(await command.ended).toMatchObject({ exitCode: 0 });
  });

  const RED = '\u001b[31m';
  const YELLOW = '\u001b[33m';

  it('have colours by their share of errors, on a terminal only', async () => {
    const { url } = await startAdmin(() => ({ body: ROWS }));
    const args = ['top', '--once', '--admin', url];
    const terminal = { columns: 200, rows: 50 };
    const painted = (await start(args, TOKEN, { terminal }).ended).stdout;
    expect(painted).toContain(`${RED}3 (30 %)\u001b[39m`);
    expect(painted).toContain(`${YELLOW}1 (2 %)\u001b[39m`);
    expect(painted).toContain(`${YELLOW}20 (20 %)\u001b[39m`);
    const plain = (await invoke(args, TOKEN)).stdout;
    expect(plain).not.toContain('\u001b');
    for (const variable of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
      const { stdout } = await start(args, { ...TOKEN, ...variable }, { terminal }).ended;
      expect(stdout).toBe(plain);
    }
    expect((await start(args, { ...TOKEN, NO_COLOR: '' }, { terminal }).ended).stdout).toBe(painted);
  });

  it('are cut to the height of the terminal, without its colours', async () => {
    const { url } = await startAdmin(() => ({ body: ROWS }));
    const stdin = createKeyboard();
    const terminal = { columns: 44, rows: 8 };
    const command = start(['top', '--interval', '1h', '--admin', url], TOKEN, { stdin, terminal });
    await command.untilWritten('vllm-2');
    stdin.write('q');
    const { stdout } = await command.ended;
    const lines = stripVTControlCharacters(stdout).split('\r\n');
    expect(lines.slice(4, 8)).toEqual([
      '',
      'NAME     STATE    INFLIGHT  REQ/S    ERRORS',
      'a        serving         4    0.8   1 (2 %)',
      'vllm-2   serving         1    0.2  3 (30 %)',
    ]);
  });

  /** The table that a terminal of this width shows. */
  const tableAt = async (columns: number, args: readonly string[] = [], body: unknown = ROWS) => {
    const { url } = await startAdmin(() => ({ body }));
    const terminal = { columns, rows: 50 };
    const { stdout } = await start(['top', '--once', ...args, '--admin', url], WITHOUT_COLOUR, { terminal })
      .ended;
    const [, table = ''] = stdout.split('\n\n');
    return { text: stdout, lines: table.trimEnd().split('\n') };
  };

  it('leave out columns on a narrow terminal, in the order of the page', async () => {
    const rows = {
      ...ROWS,
      replicas: ROWS.replicas.map((row) => ({ ...row, name: `${row.name}-${'x'.repeat(20)}` })),
    };
    const headsAt = async (columns: number) => (await tableAt(columns, [], rows)).lines[0]?.split(/ {2,}/);
    expect(await headsAt(118)).toEqual([
      'NAME',
      'STATE',
      'INFLIGHT',
      'REQ/S',
      'ERRORS',
      '4XX',
      'TOKENS/S',
      'TTFT P50',
      'TTFT P95',
      'E2E P50',
      'E2E P95',
    ]);
    expect(await headsAt(98)).toEqual([
      'NAME',
      'STATE',
      'INFLIGHT',
      'REQ/S',
      'ERRORS',
      '4XX',
      'TOKENS/S',
      'TTFT P95',
      'E2E P95',
    ]);
    expect(await headsAt(76)).toEqual([
      'NAME',
      'STATE',
      'INFLIGHT',
      'REQ/S',
      'ERRORS',
      'TTFT P95',
      'E2E P95',
    ]);
    expect(await headsAt(50)).toEqual(['NAME', 'STATE', 'INFLIGHT', 'ERRORS']);
  });

  it('are whole on the live screen if they fit, whatever their names are made of', async () => {
    const [first] = ROWS.replicas;
    const family = '👩‍👩‍👧'.repeat(8);
    const { url } = await startAdmin(() => ({ body: { ...ROWS, replicas: [{ ...first, name: family }] } }));
    const stdin = createKeyboard();
    const terminal = { columns: 110, rows: 50 };
    const command = start(['top', '--interval', '1h', '--admin', url], WITHOUT_COLOUR, { stdin, terminal });
    await command.untilWritten(family);
    stdin.write('q');
    const { stdout } = await command.ended;
    const row = stripVTControlCharacters(stdout)
      .split('\r\n')
      .find((line) => line.startsWith(family));
    expect(row).toMatch(/ serving .* 50 ms$/);
  });

  it('keep the column that they are sorted by', async () => {
    const { lines } = await tableAt(50, ['--sort', 'latency']);
    expect(lines[0]).toContain('E2E P95');
  });

  it('begin with the replicas that are unreachable or failing, whatever they are sorted by', async () => {
    const [busy, errors, other] = ROWS.replicas;
    const replicas = [
      busy,
      { ...errors, name: 'fails', health: 'failing', inflight: 0 },
      { ...other, name: 'gone', reachability: 'unreachable', inflight: 0 },
      { ...other, name: 'gone-on-purpose', reachability: 'unreachable', drained: true, inflight: 0 },
    ];
    const { url } = await startAdmin(() => ({ body: { ...ROWS, replicas } }));
    for (const sort of ['inflight', 'requests', 'name']) {
      const { stdout } = await invoke(['top', '--sort', sort, '--admin', url], TOKEN);
      expect(namesIn(stdout).slice(0, 2), sort).toEqual(['gone', 'fails']);
    }
  });

  it.each([80, 120, 200])('fit into %i columns, whatever they are called', async (columns) => {
    const names = [
      '\u001b[2J'.repeat(40),
      '名前'.repeat(60),
      '👩‍👩‍👧'.repeat(50),
      `vllm-${'x'.repeat(200)}-7`,
    ];
    const [row] = ROWS.replicas;
    const replicas = names.map((name) => ({ ...row, name }));
    const { text, lines } = await tableAt(columns, [], { ...ROWS, replicas });
    for (const line of text.split('\n')) expect(widthOf(line)).toBeLessThanOrEqual(columns);
    expect(text).not.toContain('\u001b');
    expect(lines).toContainEqual(expect.stringMatching(/^vllm-x+…x+-7 /));
    expect(text).toContain('collector is accepting records');
  });
});

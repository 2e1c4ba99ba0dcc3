import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { startFakeReplica } from '../support/fake-replica.ts';
import { ADMIN_TOKEN, startGateway } from '../support/start-gateway.ts';
import { invoke, start } from './invoke.ts';
import { REPLICA, type ScriptedAnswer, startAdmin, TOKEN } from './scripted-admin.ts';

const TRAFFIC = {
  requests: 1210,
  errors: 2,
  requests_per_s: 20.166,
  output_tokens_per_s: 1250.4,
  ttft_p50_ms: 80.2,
  ttft_p95_ms: 140.9,
  latency_p50_ms: 900,
  latency_p95_ms: 12_345,
};

const QUIET = {
  ...TRAFFIC,
  ...{ requests: 0, errors: 0, requests_per_s: 0, output_tokens_per_s: 0 },
  ...{ ttft_p50_ms: null, ttft_p95_ms: null, latency_p50_ms: null, latency_p95_ms: null },
};

const OVERVIEW = {
  time: '2026-01-01T12:00:00.000Z',
  started_at: '2025-12-31T09:00:00.000Z',
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

const toOverview = (url: string) =>
  `${url}  up 1d  12:00:00 UTC\n` +
  'last minute  20.2 requests/s  1250 output tokens/s  2 errors\n' +
  'records  1210 recorded  1200 exported  10 queued  0 dropped  0 rejected  1 failed calls; collector taking\n' +
  '\n' +
  'NAME    STATE        INFLIGHT  REQ/S  ERRORS  TOKENS/S  TTFT P50  TTFT P95  E2E P50  E2E P95\n' +
  'vllm-a  serving             3   20.2       2      1250     80 ms    141 ms   900 ms   12.3 s\n' +
  'b       drained 12m         0      0       0         0         -         -        -        -\n';

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
    const { ended } = start(['top', '--once', '--admin', url], TOKEN, { terminal });
    expect((await ended).stdout).toBe(toOverview(url));
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
    expect(stdout).toMatch(/^a {5}serving(?: +[\d.]+){4}(?: +-){2}(?: +\d+ ms){2}$/m);
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
    const command = start(['top', '--interval', '1ms', '--admin', url], TOKEN, { stdin, terminal });
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
    const lines = toOverview(url).replace('12:00:00', '12:00:01').split('\n').slice(0, 6);
    expect(first).toBe(`\u001b[H${lines.map((line) => `${line.slice(0, 40)}\u001b[K`).join('\r\n')}`);
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

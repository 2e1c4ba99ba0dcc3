import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { styleText } from 'node:util';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '#cli/arguments';
import { widthOf } from '#cli/terminal';
import { REACHABILITY_REASONS, REASON_TEXTS } from '#replicas/reachability';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { invoke, start } from './invoke.ts';
import { REPLICA, startAdmin, TOKEN } from './scripted-admin.ts';

const REPLICAS = {
  replicas: [
    REPLICA,
    {
      ...REPLICA,
      name: 'b',
      gpu_model: null,
      gpu_count: null,
      drained: true,
      inflight: 0,
      models: null,
      since: new Date(Date.now() - 2.5 * 3_600_000).toISOString(),
      reason: 'new weights',
      safe_to_stop: true,
    },
    {
      ...REPLICA,
      name: 'c',
      drained: true,
      inflight: 0,
      models: ['*'],
      removing: true,
      since: new Date(Date.now() - 12.5 * 60_000).toISOString(),
      safe_to_stop: null,
    },
    {
      ...REPLICA,
      name: 'd',
      health: 'failing',
      health_reasons: ['frozen', 'later_judge'],
      health_since: new Date(Date.now() - 4.5 * 60_000).toISOString(),
    },
    { ...REPLICA, name: 'e', drained: true, since: new Date(Date.now() - 1.5 * 60_000).toISOString() },
    {
      ...REPLICA,
      name: 'f',
      reachability: 'unreachable',
      reachability_since: new Date(Date.now() - 3.5 * 60_000).toISOString(),
      reachability_reason: 'connection_refused',
      // The less important news.
      health: 'failing',
      engine: 'unknown',
    },
    {
      ...REPLICA,
      name: 'g',
      reachability: 'loading',
      reachability_since: new Date(Date.now() - 6.5 * 60_000).toISOString(),
      reachability_reason: 'loading_model',
    },
    { ...REPLICA, name: 'h', reachability: 'unknown', reachability_since: null },
  ],
};

describe('gateway replicas', () => {
  it.each(REACHABILITY_REASONS)('names the reason %s in the words of the gateway', async (reason) => {
    const replica = { ...REPLICA, reachability: 'unreachable', reachability_reason: reason };
    const { url } = await startAdmin(() => ({ body: { replicas: [replica] } }));
    const { stdout } = await invoke(['replicas', '--admin', url], TOKEN);
    expect(stdout).toContain(`(${REASON_TEXTS[reason]})`);
  });

  it('says how many streams of a replica are silent, if any are', async () => {
    const silent = { count: 6, running: 20, oldest_ms: 75_000 };
    const replicas = [
      { ...REPLICA, silent_streams: silent },
      { ...REPLICA, health: 'failing', health_reasons: ['frozen'], silent_streams: silent },
      { ...REPLICA, silent_streams: { count: 0, running: 20, oldest_ms: null } },
    ];
    const { url } = await startAdmin(() => ({ body: { replicas } }));
    const { stdout } = await invoke(['replicas', '--admin', url], TOKEN);
    const states = stdout.split('\n').slice(1, 4);
    expect(states[0]).toContain('serving (6 of 20 streams silent for 1m)');
    expect(states[1]).toContain('failing (frozen, 6 of 20 streams silent for 1m)');
    expect(states[2]).not.toContain('silent');
  });

  it('says of a shadow that it is one, and of how many requests it gets copies', async () => {
    const since = new Date(Date.now() - 130_000).toISOString();
    const trial = { requests: 0.1, since, until: since };
    const replicas = [
      { ...REPLICA, name: 'x', shadow: { requests: null, since: null, until: null } },
      { ...REPLICA, name: 'y', shadow: trial },
      { ...REPLICA, name: 'z', shadow: trial, drained: true, since },
      { ...REPLICA, name: 'a', shadow: null },
    ];
    const { url } = await startAdmin(() => ({ body: { replicas } }));
    const { stdout } = await invoke(['replicas', '--admin', url], TOKEN);
    expect(stdout).toMatch(
      /^x +shadow {2,}.*\ny +shadow 2m \(copies of 10 %\) .*\nz +draining 2m \(shadow\) /m,
    );
    const { stdout: found } = await invoke(['replicas', '--state', 'shadow', '--admin', url], TOKEN);
    expect(found).toMatch(/^NAME.*\nx .*\ny .*\n$/);
  });

  it('shows the replicas as a table', async () => {
    const { url, calls } = await startAdmin(() => ({ body: REPLICAS }));
    const { exitCode, stdout } = await invoke(['replicas', '--admin', `${url}/`], TOKEN);
    expect(stdout).toBe(
      'NAME    STATE                                INFLIGHT  BACKGROUND  SAFE TO STOP  HOST        GPUS      ENGINE   MODELS       URL                    REASON\n' +
        'vllm-a  serving                                     3           0  no            gpu-node-1  8 x H100  vllm     llama, qwen  http://10.0.0.11:8000  -\n' +
        'b       drained 2h                                  0           0  yes           gpu-node-1  -         vllm     -            http://10.0.0.11:8000  new weights\n' +
        'c       removed 12m                                 0           0  unknown       gpu-node-1  8 x H100  vllm     *            http://10.0.0.11:8000  -\n' +
        'd       failing 4m (frozen, later judge)            3           0  no            gpu-node-1  8 x H100  vllm     llama, qwen  http://10.0.0.11:8000  -\n' +
        'e       draining 1m                                 3           0  no            gpu-node-1  8 x H100  vllm     llama, qwen  http://10.0.0.11:8000  -\n' +
        'f       unreachable 3m (connection refused)         3           0  no            gpu-node-1  8 x H100  unknown  llama, qwen  http://10.0.0.11:8000  -\n' +
        'g       loading 6m                                  3           0  no            gpu-node-1  8 x H100  vllm     llama, qwen  http://10.0.0.11:8000  -\n' +
        'h       not seen yet                                3           0  no            gpu-node-1  8 x H100  vllm     llama, qwen  http://10.0.0.11:8000  -\n',
    );
    expect(exitCode).toBe(0);
    expect(calls).toEqual(['GET /admin/replicas Bearer token-1']);
  });

  it('colours the heads and the states on a terminal, as gateway top does', async () => {
    const { url } = await startAdmin(() => ({ body: REPLICAS }));
    const terminal = { columns: 200, rows: 50 };
    const { stdout } = await start(['replicas', '--admin', url], TOKEN, { terminal }).ended;
    expect(stdout).toContain(styleText('bold', 'NAME', { validateStream: false }));
    expect(stdout).toContain(
      styleText('red', 'unreachable 3m (connection refused)', { validateStream: false }),
    );
    expect(stdout).toContain(styleText('yellow', 'loading 6m', { validateStream: false }));
    expect(stdout).toContain(styleText('dim', 'drained 2h', { validateStream: false }));
    const plain = await start(['replicas', '--admin', url], { ...TOKEN, NO_COLOR: '1' }, { terminal }).ended;
    expect(plain.stdout).not.toContain('\u001b');
  });

  it('fits into the terminal: with few columns, and names without their middle', async () => {
    const name = `vllm-${'x'.repeat(80)}-7`;
    const url = `http://${'h'.repeat(100)}.example:8000`;
    const long = { ...REPLICA, name, url, models: ['名'.repeat(100), 'b'], reason: 'weights '.repeat(30) };
    const gone = { ...long, reachability: 'unreachable', reachability_reason: 'connection_refused' };
    const admin = await startAdmin(() => ({ body: { replicas: [long, gone] } }));
    const env = { ...TOKEN, NO_COLOR: '1' };
    const at = async (columns: number, ...args: string[]) => {
      const terminal = { columns, rows: 50 };
      return (await start(['replicas', ...args, '--admin', admin.url], env, { terminal }).ended).stdout;
    };
    const headsAt = async (columns: number) => (await at(columns)).split('\n')[0]?.split(/ {2,}/);
    for (const columns of [80, 120, 200]) {
      const lines = (await at(columns)).split('\n');
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns);
      expect(lines[1]).toMatch(/^vllm-x+…x+-7 +serving /);
      expect(lines[2]).toMatch(/ unreachable /);
    }
    expect(await headsAt(80)).toEqual(['NAME', 'STATE', 'INFLIGHT', 'SAFE TO STOP']);
    expect(await headsAt(200)).toHaveLength(11);
    const piped = (await invoke(['replicas', '--admin', admin.url], TOKEN)).stdout;
    expect(piped).toContain(name);
    expect(piped).toContain(url);
    expect(await at(80, '--wide')).toBe(piped);
  });

  const namesOf = async (...args: string[]) => {
    const { url } = await startAdmin(() => ({ body: REPLICAS }));
    const { stdout } = await invoke(['replicas', '--json', ...args, '--admin', url], TOKEN);
    return (JSON.parse(stdout) as typeof REPLICAS).replicas.map(({ name }) => name);
  };

  it('shows the replicas of some states alone', async () => {
    expect(await namesOf('--state', 'unreachable')).toEqual(['f']);
    expect(await namesOf('--state', 'failing', '--state', 'not-seen-yet')).toEqual(['d', 'h']);
    const each = await Promise.all(
      COMMANDS.replicas.options.state.words.map((state) => namesOf('--state', state)),
    );
    expect(each.flat().toSorted()).toEqual(REPLICAS.replicas.map(({ name }) => name).toSorted());
  });

  it('shows the replicas of one model alone, and those of every model', async () => {
    expect(await namesOf('--model', 'qwen')).toEqual(['vllm-a', 'c', 'd', 'e', 'f', 'g', 'h']);
    expect(await namesOf('--model', 'other')).toEqual(['c']);
    expect(await namesOf('--model', 'qwen', '--state', 'loading')).toEqual(['g']);
  });

  it('says so if there is none, and which states there are', async () => {
    const { url } = await startAdmin(() => ({ body: { replicas: [] } }));
    expect((await invoke(['replicas', '--model', 'x', '--admin', url], TOKEN)).stdout).toBe(
      'no such replicas\n',
    );
    const { exitCode, stderr } = await invoke(['replicas', '--state', 'gone', '--admin', url], TOKEN);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("option '--state' must be one of unreachable, failing, loading, not-seen-yet,");
  });

  it('prints the answer itself with --json', async () => {
    const { url } = await startAdmin(() => ({ body: REPLICAS }));
    const { stdout } = await invoke(['replicas', '--json', '--admin', url], TOKEN);
    expect(JSON.parse(stdout)).toEqual(REPLICAS);
  });

  it('says below the table which source of replicas fails, since when and why', async () => {
    const since = new Date(Date.now() - 4.5 * 60_000).toISOString();
    const failing = { name: 'vllm', kind: 'kubernetes', state: 'failing', since, error_code: 'unreachable' };
    const body = {
      ...REPLICAS,
      sources: [
        { ...failing, name: 'fine', state: 'ok', error_code: null },
        { ...failing, name: 'new', state: 'unknown', since: null, error_code: null },
        failing,
        { ...failing, name: '\u001b[2Jx\ny', kind: 'dns', error_code: 'ENOTFOUND' },
        { ...failing, name: 'cert', error_cause: 'ERR_TLS_CERT_ALTNAME_INVALID' },
      ],
    };
    const { url } = await startAdmin(() => ({ body }));
    const { stdout } = await invoke(['replicas', '--admin', url], TOKEN);
    expect(stdout.split('\n').slice(REPLICAS.replicas.length + 1)).toEqual([
      'vllm: kubernetes fails 4m (unreachable), so its replicas may be out of date',
      ' [2Jx y: dns fails 4m (ENOTFOUND), so its replicas may be out of date',
      'cert: kubernetes fails 4m (unreachable, ERR_TLS_CERT_ALTNAME_INVALID), so its replicas may be out of date',
      '',
    ]);
    const { stdout: json } = await invoke(['replicas', '--json', '--admin', url], TOKEN);
    expect(JSON.parse(json)).toEqual(body);
  });

  it('says below the table which pods wait for the gateway, and that their condition cannot be written', async () => {
    const since = new Date(Date.now() - 4.5 * 60_000).toISOString();
    const gate = {
      condition: 'spangate.dev/answers',
      state: 'failing',
      since,
      error_code: 'refused',
      confirmed: 1,
      waiting: 4,
      waiting_pods: [
        { pod: 'vllm-1', since, problem: 'connection refused' },
        { pod: 'vllm-2', since, problem: null },
        { pod: '\u001b[2Jvllm-3', since, problem: 'a\nb' },
      ],
    };
    const source = { name: 'vllm', kind: 'kubernetes', state: 'ok', since, error_code: null };
    const idle = { ...gate, state: 'ok', error_code: null, waiting: 0, waiting_pods: [] };
    const sources = [
      { ...source, readiness_gate: gate },
      { ...source, name: 'idle', readiness_gate: idle },
    ];
    const { url } = await startAdmin(() => ({ body: { ...REPLICAS, sources } }));
    const { stdout } = await invoke(['replicas', '--admin', url], TOKEN);
    expect(stdout.split('\n').slice(REPLICAS.replicas.length + 1)).toEqual([
      'vllm: readiness gate fails 4m (refused), so its new pods do not get ready',
      'vllm: pod vllm-1 waits 4m for its readiness gate: connection refused',
      'vllm: pod vllm-2 waits 4m for its readiness gate: not asked yet',
      'vllm: pod  [2Jvllm-3 waits 4m for its readiness gate: a b',
      'vllm: further pods that wait: 1',
      '',
    ]);
  });

  it('does not let a name control the terminal', async () => {
    const { url } = await startAdmin(() => ({ body: { replicas: [{ ...REPLICA, name: '\u001b[2Jx' }] } }));
    const { stdout } = await invoke(['replicas', '--admin', url], TOKEN);
    expect(stdout).not.toContain('\u001b');
  });

  it('finds the gateway by its configuration file, over the loopback address if it listens on all addresses', async () => {
    const { port } = await startAdmin(() => ({ body: REPLICAS }));
    const directory = await temporaryFolder();
    const path = join(directory, 'gateway.yaml');
    const replica = 'replicas: [{ name: a, url: "http://a" }]';
    await writeFile(path, `gateway: { admin_listen: "0.0.0.0:${port}" }\n${replica}\n`);
    expect(await invoke(['replicas', '-config', path], TOKEN)).toMatchObject({ exitCode: 0 });
    expect(await invoke(['replicas'], { ...TOKEN, SVC_CONFIG: path })).toMatchObject({ exitCode: 0 });
  });
});

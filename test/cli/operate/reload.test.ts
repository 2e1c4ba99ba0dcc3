import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';
import { invoke } from '../invoke.ts';
import { startAdmin, TOKEN } from '../scripted-admin.ts';

describe('gateway reload', () => {
  it('prints what has changed, and warns of keys that need a restart', async () => {
    const body = {
      changed: ['replicas', 'timeouts.idle'],
      needs_restart: ['gateway.listen', 'export.endpoint'],
      replicas: { added: ['vllm-c', 'vllm-d'], changed: [], removed: ['vllm-a'] },
    };
    const { url, calls } = await startAdmin(() => ({ body }));
    expect(await invoke(['reload', '--admin', url], TOKEN)).toEqual({
      exitCode: 0,
      stdout:
        'reloaded\n' +
        '  changed:          replicas, timeouts.idle\n' +
        '  replicas added:   vllm-c, vllm-d\n' +
        '  replicas removed: vllm-a\n',
      stderr: 'gateway: warning: these keys need a restart: gateway.listen, export.endpoint\n',
    });
    expect(calls).toEqual(['POST /admin/reload Bearer token-1']);
    const { stdout } = await invoke(['reload', '--json', '--admin', url], TOKEN);
    expect(JSON.parse(stdout)).toEqual(body);
  });

  it('prints every problem of a file that is refused, and exits with 2', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica] });
    const reload = () => invoke(['reload', '--admin', gateway.adminUrl], { SVC_ADMIN_TOKEN: ADMIN_TOKEN });
    expect(await reload()).toEqual({ exitCode: 0, stdout: 'reloaded: nothing has changed\n', stderr: '' });
    gateway.writeConfig('replicas: []\ncolour: red\n');
    const { exitCode, stdout, stderr } = await reload();
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(
        /^gateway: .*gateway\.yaml was refused: the former configuration stays in effect$/,
      ),
      expect.stringMatching(/^ {2}line 1: replicas: /),
      expect.stringMatching(/^ {2}line 2: colour: /),
    ]);
  });

  it('says that the gateway goes on as before if the command itself cannot use the file', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-reload-'));
    const path = join(folder.path, 'gateway.yaml');
    await writeFile(path, 'replicas: []\ncolour: red\n');
    for (const [command, code] of [
      ['reload', 2],
      ['status', 3],
    ] as const) {
      const { exitCode, stderr } = await invoke([command, '-config', path], TOKEN);
      expect(exitCode).toBe(code);
      const [first, ...problems] = stderr.trimEnd().split('\n');
      expect(first).toContain('a running one keeps its former configuration. With --admin URL');
      expect(problems).toEqual([
        expect.stringContaining(`${path}:1: replicas: `),
        expect.stringContaining(`${path}:2: colour: `),
      ]);
    }
  });

  it('is refused like every call without the right token', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica] });
    const env = { SVC_ADMIN_TOKEN: 'another-admin-token' };
    expect(await invoke(['reload', '--admin', gateway.adminUrl], env)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('(unauthorized)'),
    });
  });
});

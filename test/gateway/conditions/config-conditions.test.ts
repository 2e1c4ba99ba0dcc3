import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { conditionsOf } from '#testkit/conditions.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { serve, TOKEN } from '#testkit/processes/main-process.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { ConfigWatch, noteReload } from '../../../src/gateway/conditions/config-conditions.ts';

function createBoard() {
  const on = new Map<string, object>();
  return {
    on,
    raise: ({ id, subject, figures }: { id: string; subject: string; figures: object }) =>
      void on.set(`${id} ${subject}`, figures),
    clear: (id: string, subject: string) => void on.delete(`${id} ${subject}`),
  };
}

test('a refused reload is told with its first problems until one succeeds', () => {
  const board = createBoard();
  noteReload(board, '/g.yaml', {
    kind: 'refused',
    file: 'gateway.yaml',
    problems: ['line 1: a', 'line 2: b', 'line 3: c'],
  });
  expect([...board.on]).toEqual([
    ['reload_refused /g.yaml', { reason: 'line 1: a; line 2: b; and 1 more', problems: 3 }],
  ]);
  const replicas = { added: [], changed: [], removed: [] };
  noteReload(board, '/g.yaml', { kind: 'reloaded', changed: [], needsRestart: [], replicas });
  expect(board.on.size).toBe(0);
});

test('what is told of a reload is short, however many problems there are and keys they list', () => {
  const board = createBoard();
  const keys = Array.from({ length: 60 }, (_, number) => `key_${number}`);
  const problem = `line 7: nonsense: unknown key, expected one of ${keys.join(', ')}`;
  noteReload(board, '/g.yaml', {
    kind: 'refused',
    file: 'gateway.yaml',
    problems: Array.from({ length: 40 }, () => problem),
  });
  const short =
    'line 7: nonsense: unknown key, expected one of key_0, key_1, key_2, key_3, key_4, key_5, key_6, key_7, key_8, key_9,…';
  expect(board.on.get('reload_refused /g.yaml')).toEqual({
    reason: `${short}; ${short}; and 38 more`,
    problems: 40,
  });
  const replicas = { added: [], changed: [], removed: [] };
  noteReload(board, '/g.yaml', { kind: 'reloaded', changed: keys, needsRestart: keys, replicas });
  expect(board.on.get('restart_needed ')).toEqual({ keys: 'key_0, key_1, key_2, key_3, key_4, and 55 more' });
  noteReload(board, '/g.yaml', { kind: 'refused', file: 'gateway.yaml', problems: ['x'.repeat(10_000_000)] });
  expect(board.on.get('reload_refused /g.yaml')).toEqual({ reason: `${'x'.repeat(60)}…`, problems: 1 });
});

test('two looks at files do not go on at once', async () => {
  const { promise, resolve } = Promise.withResolvers<readonly string[]>();
  let looks = 0;
  const watch = new ConfigWatch(() => {
    looks += 1;
    return promise;
  });
  const first = watch.look();
  await watch.look();
  expect(looks).toBe(1);
  resolve(['/g.yaml']);
  await first;
  expect([...watch.produce()]).toEqual([{ id: 'config_not_loaded', subject: '/g.yaml', figures: {} }]);
});

test('keys that need a restart are told until a reload takes them back', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  const keys = async () => {
    await gateway.reload();
    return (await conditionsOf(gateway, 'restart_needed')).map(({ figures }) => figures.keys);
  };
  gateway.writeConfig({ config: { gateway: { workers: 2 }, limits: { connections: 77 } } });
  expect(await keys()).toEqual(['gateway.workers, limits.connections']);
  gateway.writeConfig({ config: { gateway: { workers: 2 } } });
  expect(await keys()).toEqual(['gateway.workers']);
  gateway.writeConfig('nonsense: 1');
  expect(await keys()).toEqual(['gateway.workers']);
  const [refused] = await conditionsOf(gateway, 'reload_refused');
  expect(refused).toMatchObject({ subject: 'gateway.yaml', figures: { reason: expect.any(String) } });
  gateway.writeConfig({});
  expect(await keys()).toEqual([]);
  expect(await conditionsOf(gateway, 'reload_refused')).toEqual([]);
});

test('a configuration that has changed is told until it is loaded, and by its path', async () => {
  await using replica = await startFakeReplica();
  const gateway = await serve(replica);
  const admin = (path: string) =>
    fetch(gateway.adminUrl + path, { headers: { Authorization: `Bearer ${TOKEN}` } });
  const on = async () =>
    (await conditionsOf({ admin }, 'config_not_loaded', 'reload_refused')).map(({ id, subject }) => [
      id,
      subject,
    ]);
  const former = await readFile(gateway.configPath, 'utf8');
  await writeFile(gateway.configPath, `${former}nonsense: 1\n`);
  const changed = ['config_not_loaded', gateway.configPath];
  await expect.poll(on).toEqual([changed]);
  gateway.child.kill('SIGHUP');
  await expect.poll(on).toEqual([['reload_refused', gateway.configPath], changed]);
  await writeFile(gateway.configPath, `${former}log: { level: debug }\n`);
  gateway.child.kill('SIGHUP');
  await expect.poll(on).toEqual([]);
});

import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const STATE = { drained: true, since: '2026-01-01T00:00:00.000Z', reason: null };

/** Starts a gateway on this directory, tells what it says of its replicas, and stops it. */
async function startOn(stateDir: string) {
  await using a = await startFakeReplica({ name: 'a' });
  await using b = await startFakeReplica({ name: 'b' });
  await using gateway = await startGateway({ replicas: [a, b], stateDir });
  const replicas = await gateway.replicas();
  return {
    drained: replicas.filter(({ drained }) => drained).map(({ name }) => name),
    damage: gateway.logLines.filter((line) => line.includes('damaged')).map((line) => JSON.parse(line)),
  };
}

const asides = async (stateDir: string) =>
  (await readdir(stateDir)).filter((name) => name.startsWith('drains.json.damaged-')).sort();

describe('a gateway whose drains.json is damaged', () => {
  test.each([
    ['empty', ''],
    ['no JSON', '{"version":1,"repl'],
    ['of another kind', '[]'],
    ['of a later version', '{"version":2,"replicas":{}}'],
  ])('serves, says so and sets the file aside (%s)', async (_, text) => {
    const stateDir = await temporaryFolder();
    await writeFile(join(stateDir, 'drains.json'), text);
    const { drained, damage } = await startOn(stateDir);
    const [aside = ''] = await asides(stateDir);
    expect(drained).toEqual([]);
    expect(damage).toMatchObject([{ level: 50, set_aside: aside, lost: 'all of it' }]);
    expect(await readFile(join(stateDir, aside), 'utf8')).toBe(text);
    expect((await startOn(stateDir)).damage).toEqual([]);
  });

  test('keeps the drains that can be read, over the next restart too, and names the others', async () => {
    const stateDir = await temporaryFolder();
    const replicas = { a: STATE, b: { drained: 1 }, constructor: null, ['__proto__']: STATE };
    await writeFile(join(stateDir, 'drains.json'), JSON.stringify({ version: 1, replicas }));
    const { drained, damage } = await startOn(stateDir);
    expect([drained, damage]).toMatchObject([['a'], [{ lost: ['b', 'constructor'] }]]);
    expect(await startOn(stateDir)).toEqual({ drained: ['a'], damage: [] });
  });

  test('takes a replica for drained of which nothing else can be read', async () => {
    const stateDir = await temporaryFolder();
    const replicas = { a: { drained: true, since: 5, version: 'x' } };
    await writeFile(join(stateDir, 'drains.json'), JSON.stringify({ version: 1, replicas }));
    expect(await startOn(stateDir)).toMatchObject({ drained: ['a'], damage: [{ lost: ['a'] }] });
  });

  test('keeps what can be read of a file that is no UTF-8', async () => {
    const stateDir = await temporaryFolder();
    const text = JSON.stringify({ version: 1, replicas: { a: STATE, b\u00e9: STATE } });
    await writeFile(join(stateDir, 'drains.json'), Buffer.from(text, 'latin1'));
    const { drained, damage } = await startOn(stateDir);
    expect([drained, damage.length]).toEqual([['a'], 1]);
  });

  test('serves where there is a directory or a pipe instead of the file', async () => {
    const stateDir = await temporaryFolder();
    await mkdir(join(stateDir, 'drains.json'));
    expect((await startOn(stateDir)).damage.length).toBe(1);
    execFileSync('mkfifo', [join(stateDir, 'drains.json')]);
    expect((await startOn(stateDir)).damage.length).toBe(1);
  });

  test('keeps the latest three of such files', async () => {
    const stateDir = await temporaryFolder();
    for (let index = 0; index < 5; index++) {
      await writeFile(join(stateDir, 'drains.json'), `damage ${index}`);
      await startOn(stateDir);
    }
    const texts = (await asides(stateDir)).map((name) => readFile(join(stateDir, name), 'utf8'));
    expect(await Promise.all(texts)).toEqual(['damage 2', 'damage 3', 'damage 4']);
  });
});

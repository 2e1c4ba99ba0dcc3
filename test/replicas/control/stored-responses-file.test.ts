import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { allocateStoredResponses, mayRead, StoredResponses } from '#replicas/stored-responses';
import { createStoredResponsesFile } from '../../../src/replicas/control/stored-responses-file.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

async function createDirectory() {
  const directory = await mkdtemp(join(tmpdir(), 'responses-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

/** A gateway that starts at this time: its table, and the file. */
function startAt(directory: string, epochMs: number) {
  const clock = { nowMs: 1_000, epochMs };
  const errors: object[] = [];
  const table = new StoredResponses(allocateStoredResponses(), () => clock.nowMs);
  const log = { error: (fields: object) => void errors.push(fields) };
  const file = createStoredResponsesFile(directory, table, log, () => clock.epochMs);
  const pass = (ms: number) => {
    clock.nowMs += ms;
    clock.epochMs += ms;
  };
  return { table, file, errors, pass };
}

test('what a gateway knew when it stopped the next one knows: replica, model, name and owner', async () => {
  const directory = await createDirectory();
  const first = startAt(directory, 5 * DAY_MS);
  for (let i = 0; i < 100; i++) {
    first.table.note(`resp_${i}`, { seed: i - 50, model: 'm', calledAs: 'alias', tenant: `t${i % 3}` });
  }
  await first.file.save();
  const next = startAt(directory, 5 * DAY_MS + 1000);
  await next.file.restore();
  for (let i = 0; i < 100; i++) {
    const id = `resp_${i}`;
    const response = next.table.find(id);
    expect(response).toEqual(first.table.find(id));
    if (response === null) throw new Error('not known');
    expect(mayRead(response, id, { tenant: `t${i % 3}`, models: ['m'] })).toBe(true);
    expect(mayRead(response, id, { tenant: `t${(i + 1) % 3}`, models: null })).toBe(false);
  }
  expect(next.errors).toEqual([]);
  // What was known before is no news for the fleet.
  expect(next.table.takeNews()).toEqual([]);
});

test('a response is forgotten a day after its last use, also when the gateway did not run', async () => {
  const directory = await createDirectory();
  const first = startAt(directory, 5 * DAY_MS);
  first.table.note('resp_old', { seed: 1, model: 'm' });
  first.pass(DAY_MS / 2);
  first.table.note('resp_new', { seed: 1, model: 'm' });
  await first.file.save();
  const next = startAt(directory, 6 * DAY_MS + 5_000);
  await next.file.restore();
  expect(next.table.find('resp_old')).toBeNull();
  expect(next.table.entries().map(({ idleSeconds }) => idleSeconds)).toEqual([DAY_MS / 2000 + 5]);
  next.pass(DAY_MS / 2);
  expect(next.table.find('resp_new')).toBeNull();
});

test('there is no file before there is a response, and none is needed', async () => {
  const directory = await createDirectory();
  const first = startAt(directory, DAY_MS);
  await first.file.restore();
  await first.file.save();
  expect(await readdir(directory)).toEqual([]);
});

test('of a damaged file the legible lines count, and it is set aside', async () => {
  const directory = await createDirectory();
  const first = startAt(directory, 5 * DAY_MS);
  first.table.note('resp_1', { seed: 1, model: 'm' });
  await first.file.save();
  const path = join(directory, 'responses.txt');
  const line = await readFile(path, 'utf8');
  const damaged = ['nonsense\n', line, line.slice(1), `${line.trim()}0000\n`, `${'g'.repeat(88)} 1\n`];
  await writeFile(path, damaged.join(''));
  const next = startAt(directory, 5 * DAY_MS);
  await next.file.restore();
  expect(next.table.entries()).toHaveLength(1);
  expect(next.table.find('resp_1')).not.toBeNull();
  expect(next.errors).toHaveLength(1);
  expect(await readdir(directory)).toEqual([expect.stringMatching(/^responses\.txt\.damaged-/)]);
});

import { createHash } from 'node:crypto';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createInTurn, StartError } from '#base';
import { EventLog } from '#testkit/event-log.ts';
import { ClientsWatcher } from '../../../src/access/clients/clients-watcher.ts';
import { readClients } from '../../../src/access/clients/read-clients.ts';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spangate-clients-'));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

const lineOf = (name: string) =>
  `${JSON.stringify({ name, key_sha256: createHash('sha256').update(name).digest('hex') })}\n`;

test('a changed file is used, one that cannot be used is a problem until it can, and the former clients stay', async () => {
  const path = join(folder, 'clients.jsonl');
  await writeFile(path, lineOf('first'));
  const sources = { clients: null, clientsFile: path };
  const used = new EventLog<readonly string[]>();
  const watcher = new ClientsWatcher(await readClients(sources), {
    intervalMs: 5,
    inTurn: createInTurn(),
    sources: () => sources,
    use: async (next) => used.push((next ?? []).map(({ name }) => name)),
    log: { info: () => undefined },
  });
  watcher.start();
  try {
    await writeFile(path, lineOf('second') + lineOf('third'));
    await used.until(() => used.items.at(-1)?.length === 2);
    expect(used.items.at(-1)).toEqual(['second', 'third']);

    await writeFile(join(folder, 'next'), lineOf('twice') + lineOf('twice'));
    await rename(join(folder, 'next'), path);
    await expect.poll(() => watcher.problem).toContain('has the same name');
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(watcher.problem).toContain('has the same name');
    await rm(path);
    await expect.poll(() => watcher.problem).toContain('ENOENT');
    const usedCount = used.items.length;

    await writeFile(join(folder, 'next'), lineOf('fourth'));
    await rename(join(folder, 'next'), path);
    await used.count(usedCount + 1);
    expect(used.items.at(-1)).toEqual(['fourth']);
    await expect.poll(() => watcher.problem).toBeNull();
  } finally {
    watcher.stop();
  }
});

test('a list that a reload has read is used only if it is another one', async () => {
  const path = join(folder, 'reloaded.jsonl');
  await writeFile(path, lineOf('first'));
  const read = () => readClients({ clients: null, clientsFile: path });
  const used: unknown[] = [];
  const watcher = new ClientsWatcher(await read(), {
    intervalMs: 60_000,
    inTurn: createInTurn(),
    sources: () => ({ clients: null, clientsFile: path }),
    use: async (next) => void used.push(next),
    log: { info: () => undefined },
  });
  await watcher.adopt(await read());
  expect(used).toEqual([]);
  await writeFile(path, lineOf('first') + lineOf('second'));
  await watcher.adopt(await read());
  await watcher.adopt({ clients: null, sources: { clients: null, fileVersion: null } });
  expect(used).toMatchObject([[{ name: 'first' }, { name: 'second' }], null]);
});

test('a file that a reload has read is no problem any more', async () => {
  const path = join(folder, 'mended.jsonl');
  await writeFile(path, lineOf('first'));
  const sources = { clients: null, clientsFile: path };
  const good = await readClients(sources);
  const watcher = new ClientsWatcher(good, {
    intervalMs: 5,
    inTurn: createInTurn(),
    sources: () => sources,
    use: async () => undefined,
    log: { info: () => undefined },
  });
  await rm(path);
  watcher.start();
  await expect.poll(() => watcher.problem).toContain('ENOENT');
  watcher.stop();
  await watcher.adopt(good);
  expect(watcher.problem).toBeNull();
});

test.each([
  ['none', /^clients_file: cannot read .*none \(ENOENT\)$/],
  ['.', /^clients_file: .* is not a file$/],
])('a path without a file says so in one line: %s', async (name, message) => {
  const reading = readClients({ clients: null, clientsFile: join(folder, name) });
  await expect(reading).rejects.toThrow(StartError);
  await expect(reading).rejects.toThrow(message);
});

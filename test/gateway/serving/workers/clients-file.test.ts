import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { chatAtOnce, startWorkers } from './start-workers.ts';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spangate-clients-'));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

const toEntry = (name: string) => ({
  name,
  key_sha256: createHash('sha256').update(`key of ${name}`).digest('hex'),
});
const keyOf = (name: string) => ({ headers: { 'x-api-key': `key of ${name}` } });

test('clients of a file are clients of every worker, also of one that is replaced; a reload applies it whole or not at all', async () => {
  const path = join(folder, 'clients.jsonl');
  await writeFile(path, JSON.stringify(toEntry('in-file')));
  await using replica = await startFakeReplica();
  using workers = watchWorkerThreads();
  await using gateway = await startWorkers(2, {
    replicas: [replica],
    config: { clients: [toEntry('in-config')], clients_file: path },
  });
  const statusesOf = async (name: string) => {
    const answers = await Promise.all(chatAtOnce(gateway, 20, keyOf(name)));
    return [...new Set(answers.map((answer) => answer?.status))];
  };
  expect(await statusesOf('in-file')).toEqual([200]);
  expect(await statusesOf('in-config')).toEqual([200]);

  const gate = createGate();
  const before = replica.requests.length;
  replica.answerOnce(gate.script);
  const running = gateway.chat({}, keyOf('in-file'));
  await replica.untilRequests(before + 1);
  await writeFile(path, JSON.stringify(toEntry('new')));
  expect((await gateway.reload()).status).toBe(200);
  expect(await statusesOf('in-file')).toEqual([401]);
  expect(await statusesOf('new')).toEqual([200]);
  gate.open();
  expect((await running).status).toBe(200);

  await writeFile(path, JSON.stringify(toEntry('in-config')));
  const refused = await gateway.reload();
  expect(refused.status).toBe(422);
  expect(await refused.text()).toContain('clients[0] of the configuration has the same name');
  expect(await statusesOf('new')).toEqual([200]);

  await workers.kill(0);
  await gateway.untilLogged('worker replaced');
  expect(await statusesOf('new')).toEqual([200]);
  expect(await statusesOf('in-file')).toEqual([401]);
});

import { execFileSync } from 'node:child_process';
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { answerJson, COMPLETION, type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { spawnMain } from '#testkit/processes/main-process.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import type { VerifyReport } from '../../../src/records/verify/report.ts';
import { invoke } from '../../cli/invoke.ts';

const AWAY = { status: 503 };
/** While the collector is away. Otherwise a busy machine takes longer to send the last ledger span. */
const SHORT = { shutdown: { flush: '50ms' } };
const LEDGER = { interval: '1h' };

let stateDir: string;
let replica: FakeReplica;
let collector: FakeCollector;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'spangate-'));
  [replica, collector] = await Promise.all([startFakeReplica(), startFakeCollector()]);
});
afterEach(async () => {
  await Promise.all([replica.close(), collector.close()]);
  await rm(stateDir, { recursive: true, force: true });
});

/** A gateway that writes its records to `records.jsonl`. */
const startWithFile = (exporting: object = {}) =>
  startGateway({
    replicas: [replica],
    stateDir,
    config: { export: { to: 'file', interval: '10ms', ledger: LEDGER, ...exporting } },
  });

/** A gateway that sends its records to the collector. */
const startWithCollector = (exporting: object = {}, more: object = {}) =>
  startGateway({
    replicas: [replica],
    collector,
    stateDir,
    config: {
      export: { retry: { initial: '1ms', max: '5ms' }, ledger: LEDGER, ...exporting },
      ...more,
    },
  });

async function serve(gateway: StartedGateway, count: number): Promise<void> {
  const headers = { connection: 'close' };
  const before = gateway.records.length;
  const responses = await Promise.all(Array.from({ length: count }, () => gateway.chat({}, { headers })));
  await Promise.all(responses.map((response) => response.arrayBuffer()));
  await gateway.waitForRecords(before + count);
}

const file = () => join(stateDir, 'records.jsonl');

/** What the collector has taken, as a file of lines. */
async function writeTaken(): Promise<string> {
  const taken = collector.calls.filter(({ status = 0 }) => status === 200);
  await writeFile(file(), taken.map(({ body }) => `${body}\n`).join(''));
  return file();
}

async function verify(...args: readonly string[]) {
  const { exitCode, stdout, stderr } = await invoke(['verify', '--json', ...args]);
  expect(stderr).toBe('');
  const report = JSON.parse(stdout) as VerifyReport;
  expect(report.proven).toBe(exitCode === 0);
  return { exitCode, report, instances: report.instances };
}

test('nothing is proven with a line that cannot be read: another reader may find a record in it', async () => {
  const gateway = await startWithFile();
  await serve(gateway, 5);
  await gateway.close();
  const lines = await readFile(file(), 'utf8');
  await writeFile(file(), `${lines}{"resourceSpans":[,]}\n`);
  const { exitCode, report } = await verify(file());
  expect(exitCode).toBe(1);
  expect(report).toMatchObject({ broken_lines: 1, instances: [{ state: 'complete' }] });
});

describe('the records of a gateway are proven', () => {
  test('in its own file, which may be compressed, and split', async () => {
    const gateway = await startWithFile();
    await serve(gateway, 20);
    await gateway.close();
    const { exitCode, instances } = await verify(file());
    expect([exitCode, instances.length]).toEqual([0, 1]);
    expect(instances[0]).toMatchObject({ state: 'complete', records: 20, committed_to: 20, ended: true });

    const lines = (await readFile(file(), 'utf8')).split(/(?<=\n)/);
    const [gz, zst] = [join(stateDir, 'a.jsonl.gz'), join(stateDir, 'b')];
    await writeFile(gz, gzipSync(lines.slice(1).join('')));
    await writeFile(zst, zstdCompressSync(lines.slice(0, 1).join('')));
    expect((await verify(gz, zst)).exitCode).toBe(0);
    expect((await verify(gz)).exitCode).toBe(1);
  });

  test('when they went to a collector as protobuf, and its spans are in no counter of records', async () => {
    const gateway = await startWithCollector();
    await serve(gateway, 10);
    await expect.poll(async () => (await gateway.stats()).exported).toBe(10);
    expect(await gateway.stats()).toMatchObject({ recorded: 10, queued: 0 });
    await gateway.close();
    expect((await verify(await writeTaken())).exitCode).toBe(0);
  });

  test('over a restart, with records and ledgers that the next start sends from the spool', async () => {
    collector.answerAlways(AWAY);
    const first = await startWithCollector({}, SHORT);
    await serve(first, 5);
    await first.close();
    const spooled = await Promise.all(
      ['spool', 'spool-ledger'].map(async (name) =>
        (await readdir(join(stateDir, name))).map((each) => join(stateDir, name, each)),
      ),
    );
    expect((await verify(...spooled.flat())).exitCode).toBe(0);

    collector.answerAlways({});
    const second = await startWithCollector();
    await serve(second, 3);
    await collector.waitFor(({ spans }) => spans.length >= 9);
    await second.close();
    expect(await readdir(join(stateDir, 'spool-ledger'))).toEqual([]);
    const { exitCode, instances } = await verify(await writeTaken());
    expect(exitCode).toBe(0);
    expect(instances.map(({ records }) => records).toSorted()).toEqual([3, 5]);
  });

  test('with two workers, each of which has an instance', async () => {
    const gateway = await startGateway({
      replicas: [replica],
      stateDir,
      config: { gateway: { workers: 2 }, export: { to: 'file', interval: '10ms', ledger: LEDGER } },
    });
    await serve(gateway, 40);
    await gateway.close();
    const { exitCode, instances } = await verify(file());
    expect(exitCode).toBe(0);
    expect(instances.reduce((sum, { records }) => sum + records, 0)).toBe(40);
  });
});

describe('what is not there is named exactly:', () => {
  test('records that a full queue has dropped, as the gateway declares', async () => {
    collector.answerAlways(AWAY);
    const gateway = await startWithCollector({ queue_size: 4, batch_size: 2 }, SHORT);
    await serve(gateway, 10);
    await gateway.close();
    collector.answerAlways({});
    const next = await startWithCollector();
    await collector.waitFor(({ spans }) => spans.length === 5);
    await next.close();
    const { exitCode, instances } = await verify(await writeTaken());
    expect(exitCode).toBe(1);
    expect(instances).toHaveLength(1);
    expect(instances[0]).toMatchObject({
      state: 'incomplete',
      records: 4,
      ended: true,
      declared_dropped: { count: 6, ranges: ['5-10'] },
    });
    expect(instances[0]).not.toHaveProperty('missing');
  });

  test('records that the collector has rejected for good, as the gateway declares', async () => {
    const gateway = await startWithCollector({ batch_size: 5, interval: '1h' });
    collector.answerNext({ status: 400 });
    await serve(gateway, 5);
    await expect.poll(async () => (await gateway.stats()).rejected).toBe(5);
    await serve(gateway, 5);
    await gateway.close();
    const { instances } = await verify(await writeTaken());
    expect(instances[0]).toMatchObject({
      state: 'incomplete',
      records: 5,
      declared_rejected: { count: 5, ranges: ['1-5'] },
    });
    expect(instances[0]).not.toHaveProperty('missing');
  });

  test('the requests of a worker that died, as the gateway declares', async () => {
    using watched = watchWorkerThreads();
    const gateway = await startGateway({
      replicas: [replica],
      stateDir,
      config: { gateway: { workers: 2 }, export: { to: 'file', interval: '10ms', ledger: LEDGER } },
    });
    await serve(gateway, 30);
    const killed = Promise.withResolvers<void>();
    replica.answer(async (exchange) => {
      await killed.promise;
      await answerJson(COMPLETION)(exchange);
    });
    const cut = Array.from({ length: 12 }, () =>
      gateway.chat({}, { headers: { connection: 'close' } }).catch(() => null),
    );
    await replica.untilRequests(42);
    await watched.kill(0);
    await watched.untilStarted(3);
    killed.resolve();
    await Promise.all(cut);
    await expect.poll(async () => (await gateway.stats()).recorded).toBe(42);
    const { lost = 0 } = await gateway.stats();
    expect(lost).toBeGreaterThan(0);
    await gateway.close();
    const { exitCode, instances } = await verify(file());
    expect(exitCode).toBe(1);
    const [dead] = instances.filter(({ state }) => state === 'incomplete');
    const from = (dead?.records ?? 0) + 1;
    const to = (dead?.records ?? 0) + lost;
    expect(dead).toMatchObject({
      ended: true,
      committed_to: to,
      declared_lost: { count: lost, ranges: [from === to ? `${from}` : `${from}-${to}`] },
    });
    expect(dead).not.toHaveProperty('missing');
    expect(instances.filter(({ state }) => state === 'complete')).toHaveLength(instances.length - 1);
  });

  test('the records after the last ledger span, when the gateway is killed', async () => {
    const config = join(stateDir, 'gateway.yaml');
    await writeFile(
      config,
      JSON.stringify({
        gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
        state_dir: stateDir,
        replicas: [{ name: 'a', url: replica.url, models: ['m'], engine: 'openai' }],
        export: { to: 'file', interval: '10ms', ledger: LEDGER },
      }),
    );
    const { child, stdout, closed } = spawnMain(['-config', config]);
    const { promise: untilServing, resolve } = Promise.withResolvers<string>();
    createInterface({ input: stdout }).on('line', (line) => {
      const { msg, listen } = JSON.parse(line);
      if (msg === 'serving') resolve(listen);
    });
    const listen = await untilServing;
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] });
    const headers = { 'content-type': 'application/json' };
    // The ledger span comes after 1,024 records; those after it are the tail.
    for (let sent = 0; sent < 1030; sent += 103) {
      const answers = Array.from({ length: 103 }, async () => {
        const response = await fetch(`http://${listen}/v1/chat/completions`, {
          method: 'POST',
          headers,
          body,
        });
        await response.arrayBuffer();
      });
      await Promise.all(answers);
    }
    const spans = async () =>
      ((await readFile(file(), 'utf8').catch(() => '')).match(/"spanId"/g) ?? []).length;
    await expect.poll(spans).toBe(1031);
    child.kill('SIGKILL');
    await closed;

    const { exitCode, instances } = await verify(file());
    expect(exitCode).toBe(1);
    expect(instances[0]).toMatchObject({
      state: 'open',
      records: 1030,
      committed_to: 1024,
      ended: false,
      not_committed: { count: 6, ranges: ['1025-1030'] },
    });
    expect((await verify('--partial', file())).exitCode).toBe(0);
    const printed = await invoke(['verify', file()]);
    expect(printed.stdout).toContain('not committed: after the last ledger span: 1025-1030 (6)');
  });
});

describe('sums of a backend', () => {
  const SUMS = { count: 8, prompt_tokens: 24, completion_tokens: 16, cached_tokens: 0 };

  test('are compared with the ledger spans alone', async () => {
    const gateway = await startWithFile();
    await serve(gateway, 8);
    await gateway.close();
    const [first] = (await verify(file())).instances;
    expect(first?.records).toBe(8);
    const sums = {
      instance: first?.instance,
      count: 8,
      prompt_tokens: first?.prompt_tokens,
      completion_tokens: first?.completion_tokens,
    };
    const ledgers = join(stateDir, 'ledger.jsonl');
    const lines = (await readFile(file(), 'utf8')).split('\n');
    await writeFile(ledgers, lines.filter((line) => line.includes('gateway.ledger.number')).join('\n'));
    const path = join(stateDir, 'sums.json');

    await writeFile(path, JSON.stringify([sums]));
    expect((await verify('--sums', path, ledgers)).exitCode).toBe(0);
    await writeFile(path, JSON.stringify({ ...sums, count: '7', prompt_tokens: 1 }));
    const { exitCode, report } = await verify('--sums', path, ledgers);
    expect(exitCode).toBe(1);
    expect(report.sums?.differences).toMatchObject([
      { what: 'count', expected: 8, found: 7 },
      { what: 'prompt_tokens', expected: first?.prompt_tokens, found: 1 },
    ]);
    await writeFile(path, JSON.stringify([{ ...sums, first_seq: 1, last_seq: 5 }]));
    expect((await verify('--sums', path, ledgers)).report.sums?.differences).toMatchObject([
      { what: 'ledger' },
    ]);
    await writeFile(path, '[]');
    expect((await verify('--sums', path, ledgers)).report.sums?.differences).toMatchObject([
      { what: 'row', expected: 8, found: null },
    ]);
  });

  test.each([
    ['no JSON', 'x', 'neither a JSON array'],
    ['a row without an instance', JSON.stringify([SUMS]), 'row 1 lacks instance or count'],
    ['a count that is no number', JSON.stringify([{ instance: 'a', count: -1 }]), 'row 1 lacks'],
  ])('that are %s end with 2', async (_, text, message) => {
    const path = join(stateDir, 'sums.json');
    await writeFile(path, text);
    const { exitCode, stderr } = await invoke(['verify', '--sums', path, path]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe('files that cannot be verified end with 2:', () => {
  test('none, one that is not there, one without records', async () => {
    expect((await invoke(['verify'])).exitCode).toBe(2);
    const missing = await invoke(['verify', join(stateDir, 'none.jsonl')]);
    expect(missing).toMatchObject({ exitCode: 2 });
    expect(missing.stderr).toContain('there is no such file');
    await writeFile(file(), 'text\n');
    expect(await invoke(['verify', file()])).toMatchObject({ exitCode: 2 });
    const cut = join(stateDir, 'cut.gz');
    await writeFile(cut, gzipSync('{}\n').subarray(0, 12));
    expect(await invoke(['verify', cut])).toMatchObject({ exitCode: 2 });
    await copyFile(cut, file());
  });

  test('a directory and a FIFO, at once, also as sums and for export-trace', async () => {
    const fifo = join(stateDir, 'fifo');
    execFileSync('mkfifo', [fifo]);
    const asPipe = 'for a pipe, give - and the pipe as standard input';
    for (const args of [
      ['verify', fifo],
      ['verify', '--sums', fifo, '-'],
      ['export-trace', fifo],
    ]) {
      expect((await invoke(args)).stderr).toContain(
        `cannot read ${fifo}: it is not a regular file: ${asPipe}`,
      );
    }
    expect((await invoke(['verify', fifo])).exitCode).toBe(2);
    const folder = await invoke(['verify', stateDir]);
    expect(folder).toMatchObject({
      exitCode: 2,
      stderr: `gateway: cannot read ${stateDir}: it is a directory\n`,
    });
  });

  test('a compressed file with records behind a zero byte', async () => {
    const gateway = await startWithFile();
    await serve(gateway, 5);
    await gateway.close();
    const whole = gzipSync(await readFile(file()));
    await writeFile(file(), whole);
    expect((await verify(file())).exitCode).toBe(0);
    await writeFile(file(), Buffer.concat([whole, Buffer.alloc(1), whole]));
    expect(await invoke(['verify', file()])).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: `gateway: cannot read ${file()}: it goes on behind its compressed data\n`,
    });
  });
});

import { expect, test } from 'vitest';
import { chat, startReplica } from '#testkit/processes/main-process.ts';
import { type GatewayOnOwnDisk, serveOnOwnDisk, whyNoOwnDisk } from '#testkit/processes/own-disk.ts';

const why = whyNoOwnDisk();
const withOwnDisk = test.skipIf(why !== null);
if (why !== null) console.warn(`Tests with full and read-only disks are skipped: ${why}.`);

/** Sends this many requests, all of which must be served. */
async function serves(gateway: GatewayOnOwnDisk, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent++) expect((await chat(gateway.url)).status).toBe(200);
}

/** What a full disk brings about. */
const FULL = ['records_not_written', 'records_dropped', 'state_not_stored'];

/** The conditions that have begun, or ended. */
const toldBy = ({ log }: GatewayOnOwnDisk, change: 'begins' | 'ends') =>
  log.flatMap(({ condition, msg }) =>
    condition !== undefined && String(msg).startsWith('over: ') === (change === 'ends') ? condition : [],
  );

const DRAIN = '/admin/replicas/a/drain';

withOwnDisk(
  'with a full disk every request is served, what is lost is counted, and all is stored when there is room',
  async () => {
    const gateway = await serveOnOwnDisk(await startReplica());
    await serves(gateway, 1);
    await expect.poll(() => gateway.admin('GET', '/admin/stats')).toMatchObject({ exported: 1, queued: 0 });
    await gateway.fill();
    // What fits into the rest of a page is still written.
    await serves(gateway, 120);
    // The last record comes a moment after its answer.
    await expect
      .poll(() => gateway.admin('GET', '/admin/stats'))
      .toMatchObject({ recorded: 121, queued: 50 });
    const full = await gateway.admin('GET', '/admin/stats');
    expect(Number(full.exported) + Number(full.dropped)).toBe(71);
    expect(await gateway.admin('POST', DRAIN)).toMatchObject({ stored: false, replica: { drained: true } });
    expect((await chat(gateway.url)).status).toBe(503);
    await gateway.free();
    await expect.poll(() => gateway.admin('GET', '/admin/stats')).toMatchObject({ queued: 0, lost: 0 });
    await expect.poll(() => gateway.read('drains.json').catch(() => '')).toContain('"drained":true');
    const { exported, dropped, recorded } = await gateway.admin('GET', '/admin/stats');
    expect(Number(exported) + Number(dropped)).toBe(recorded);
    const lines = (await gateway.read('records.jsonl'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const spans = lines.flatMap(
      ({
        resourceSpans: [
          {
            scopeSpans: [{ spans: inLine }],
          },
        ],
      }) => inLine,
    );
    expect(spans).toHaveLength(Number(exported));
    await expect.poll(() => toldBy(gateway, 'ends')).toEqual(expect.arrayContaining(FULL));
    expect(toldBy(gateway, 'begins')).toEqual(expect.arrayContaining(FULL));
    gateway.stop();
    expect(await gateway.closed).toBe(0);
  },
);

withOwnDisk('with a disk that has become read-only it is the same', async () => {
  const gateway = await serveOnOwnDisk(await startReplica(), { history: 'off' });
  await serves(gateway, 1);
  await expect.poll(() => gateway.admin('GET', '/admin/stats')).toMatchObject({ queued: 0 });
  gateway.remount('ro');
  await serves(gateway, 30);
  expect(await gateway.admin('POST', DRAIN)).toMatchObject({ stored: false });
  expect(await gateway.admin('GET', '/admin/stats')).toMatchObject({ exported: 1, queued: 30, dropped: 0 });
  gateway.remount('rw');
  await expect.poll(() => gateway.admin('GET', '/admin/stats')).toMatchObject({ exported: 31, queued: 0 });
  await expect.poll(() => gateway.read('drains.json').catch(() => '')).toContain('"drained":true');
  const reason = 'the file system is read-only (EROFS)';
  expect(gateway.log).toContainEqual(expect.objectContaining({ condition: 'records_not_written', reason }));
});

withOwnDisk(
  'a history on a full disk is told, says what its answers lack, and has everything when there is room',
  async () => {
    const gateway = await serveOnOwnDisk(await startReplica(), { collectorUrl: 'http://127.0.0.1:9' });
    const usage = async () => {
      const { total, gaps } = await gateway.admin('GET', '/admin/usage?since=1h');
      return { requests: (total as Record<string, unknown>).requests, gaps };
    };
    await serves(gateway, 1);
    await expect.poll(usage).toEqual({ requests: 1, gaps: [] });
    await gateway.fill();
    await serves(gateway, 500);
    await expect.poll(() => toldBy(gateway, 'begins')).toContain('history_not_written');
    await expect.poll(async () => (await usage()).gaps).toMatchObject([{ reason: 'waiting' }]);
    const { requests, gaps } = await usage();
    const [{ records }] = gaps as [{ readonly records: number }];
    expect(Number(requests) + records).toBe(501);
    await gateway.free();
    await expect.poll(usage).toEqual({ requests: 501, gaps: [] });
    await expect.poll(() => toldBy(gateway, 'ends')).toContain('history_not_written');
  },
);

withOwnDisk(
  'a stop with a full disk and without a collector says how many records are lost, and exits with 1',
  async () => {
    const gateway = await serveOnOwnDisk(await startReplica(), { collectorUrl: 'http://127.0.0.1:9' });
    await serves(gateway, 3);
    await gateway.fill();
    await expect.poll(() => gateway.admin('GET', '/admin/stats')).toMatchObject({ queued: 3 });
    gateway.stop();
    expect(await gateway.closed).toBe(1);
    expect(gateway.log).toContainEqual(
      expect.objectContaining({
        msg: 'spool cannot be written: records are lost',
        reason: 'ENOSPC',
        undelivered: 3,
      }),
    );
    expect(gateway.log.at(-1)).toMatchObject({ msg: 'stopped', undeliveredRecords: 3 });
  },
);

withOwnDisk('a stop with a disk that is almost full spools the records that there is room for', async () => {
  const to = { collectorUrl: 'http://127.0.0.1:9', history: 'off' } as const;
  const gateway = await serveOnOwnDisk(await startReplica(), to);
  await serves(gateway, 40);
  await expect.poll(() => gateway.admin('GET', '/admin/stats')).toMatchObject({ queued: 40 });
  await gateway.fill();
  await gateway.free(32 * 1024);
  gateway.stop();
  expect(await gateway.closed).toBe(1);
  const { undelivered } = gateway.log.find(({ reason }) => reason === 'ENOSPC') ?? {};
  expect(undelivered).toBeLessThan(40);
  expect(gateway.log).toContainEqual(expect.objectContaining({ spooled: 40 - Number(undelivered) }));
});

withOwnDisk('a start on a disk that is read-only is refused in one line', async () => {
  const gateway = await serveOnOwnDisk(await startReplica(), { isReadOnly: true });
  expect(await gateway.closed).toBe(1);
  expect((await gateway.stderr).trim().split('\n')).toEqual([
    expect.stringMatching(/^gateway: state_dir .*: the file system is read-only/),
  ]);
});

withOwnDisk(
  'a log on a full disk costs no request; the log says later how many of its lines are missing',
  async () => {
    const gateway = await serveOnOwnDisk(await startReplica(), { logsToDisk: true });
    await gateway.fill();
    await serves(gateway, 60);
    await gateway.free();
    await serves(gateway, 1);
    await expect.poll(() => gateway.read('log')).toContain('lines of the log were lost');
    const told = { id: 'log_lines_lost', figures: { lost: expect.any(Number), reason: 'ENOSPC' } };
    await expect
      .poll(() => gateway.admin('GET', '/admin/conditions'))
      .toMatchObject({ conditions: expect.arrayContaining([expect.objectContaining(told)]) });
    gateway.stop();
    expect(await gateway.closed).toBe(0);
    const said = await gateway.stderr;
    expect(
      said
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([expect.objectContaining({ level: 'error', reason: 'ENOSPC' })]);
  },
);

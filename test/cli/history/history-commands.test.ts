import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { LocalTime } from '../../../src/cli/history/local-time.ts';
import { invoke } from '../invoke.ts';
import { startAdmin } from '../scripted-admin.ts';

const ENV = { SVC_ADMIN_TOKEN: ADMIN_TOKEN };
/** What a spreadsheet would compute, and a terminal obey. */
const FORMULA = '=1+1,"x"';

let replica: FakeReplica;
let first: StartedGateway;
let second: StartedGateway;

async function startWith(tenants: readonly string[], model = 'm'): Promise<StartedGateway> {
  const gateway = await startGateway({
    replicas: [{ name: 'a', url: replica.url }],
    config: { history: {} },
  });
  for (const tenant of tenants) {
    await (await gateway.chat({ model }, { headers: { 'X-Tenant': tenant } })).text();
  }
  await gateway.waitForRecords(tenants.length);
  return gateway;
}

beforeAll(async () => {
  replica = await startFakeReplica();
  first = await startWith(['acme', 'acme', FORMULA]);
  second = await startWith(['acme', 'other']);
  await (await second.chat({ model: 'none' }, { headers: { 'X-Tenant': 'acme' } })).text();
  await second.waitForRecords(3);
});
afterAll(async () => {
  await Promise.all([first.close(), second.close()]);
  await replica.close();
});

const one = () => ['--admin', first.adminUrl, '--time-zone', 'UTC'];
const both = () => [...one(), '--admin', second.adminUrl];

describe.each([
  ['usage', '--since', '1h'],
  ['records', '--since', '1h'],
  ['records', '--request', 'any'],
  ['timeline', '--since', '1h'],
  ['statement', '--tenant', 'acme', '--month', '2026-01', '--unsigned'],
])('gateway %s of several gateways', (...command) => {
  it('says which of them has no history', async () => {
    const { url } = await startAdmin(({ url: path }) =>
      path === '/admin/gateways'
        ? { body: { gateways: [], instance_id: 'off' } }
        : { status: 404, body: { error: { code: 'history_off', message: 'It is off.' } } },
    );
    const { exitCode, stderr } = await invoke([...command, ...one(), '--admin', url], ENV);
    expect([exitCode, stderr]).toEqual([
      1,
      `gateway: the admin API at ${url} refused: It is off. (history_off)\n`,
    ]);
  });
});

describe('gateway usage', () => {
  it('shows a row for each tenant, the span with its zone, and the total', async () => {
    const { exitCode, stdout, stderr } = await invoke(['usage', '--since', '1h', ...one()], ENV);
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('are not kept')]);
    const [span, heads, ...rows] = stdout.trimEnd().split('\n');
    expect(span).toMatch(/^\d{4}-\d\d-\d\dT\d\d:00:00Z to \d{4}-.*Z \(UTC\), by whole (?:minute|hour)s$/);
    expect(heads).toMatch(/^TENANT +REQUESTS +ERRORS +4XX +CANCELED +IN +CACHED +OUT +GPU +COST/);
    expect(rows.map((row) => row.trim().split(/ {2,}/).slice(0, 2))).toEqual([
      ['acme', '2'],
      [FORMULA, '1'],
      ['total', '3'],
    ]);
  });

  it('sums several gateways, and one that is named twice once', async () => {
    const sum = await invoke(['usage', '--since', '1h', '--json', ...both(), ...one()], ENV);
    const { rows, total, gateways } = JSON.parse(sum.stdout);
    expect(total).toMatchObject({ requests: 6, client_errors: 1, failures: { model_not_found: 1 } });
    expect(rows[0]).toMatchObject({ tenant: 'acme', requests: 4, e2e_ms: { p50: null } });
    expect(gateways).toHaveLength(2);
  });

  it('has the quantiles of the only gateway that served', async () => {
    const { stdout } = await invoke(
      ['usage', '--since', '1h', '--tenant', FORMULA, '--json', ...both()],
      ENV,
    );
    const alone = JSON.parse(stdout).total;
    await (await second.chat({ model: 'none' }, { headers: { 'X-Tenant': FORMULA } })).text();
    await second.waitForRecords(4);
    const sum = await invoke(['usage', '--since', '1h', '--tenant', FORMULA, '--json', ...both()], ENV);
    const { requests, client_errors, e2e_ms } = JSON.parse(sum.stdout).total;
    expect([requests, client_errors, e2e_ms.p50]).toEqual([2, 1, alone.e2e_ms.p50]);
    expect(e2e_ms.p50).not.toBeNull();
  });

  it('counts a gateway once that has two names, and says so', async () => {
    const again = first.adminUrl.replace('127.0.0.1', 'localhost');
    for (const command of ['usage', 'records', 'timeline']) {
      const args = [command, '--since', '1h', '--json', ...one()];
      const once = await invoke(args, ENV);
      const twice = await invoke([...args, '--admin', again], ENV);
      const seqsOf = (text: string) => text.match(/"(?:seq|number|requests)": ?\d+/g);
      expect(seqsOf(twice.stdout)).toEqual(seqsOf(once.stdout));
      expect(twice.stderr).toContain(`${again} is the same gateway as ${first.adminUrl}: it counts once`);
    }
  });

  it('prints CSV that no spreadsheet computes', async () => {
    const { stdout } = await invoke(
      ['usage', '--since', '1h', '--by', 'tenant,model', '--csv', ...one()],
      ENV,
    );
    const [heads, ...rows] = stdout.trimEnd().split('\r\n');
    expect(heads).toMatch(/^start,tenant,model,other,requests,attempts,errors,/);
    expect(rows[1]).toMatch(/^[\dT:.-]+Z,"'=1\+1,""x""",m,false,1,1,0,/);
  });

  it('says that nobody has had a name, and that a span is older than what is kept', async () => {
    const nobody = await invoke(['usage', '--tenant', 'nobody', '--since', '1m', ...one()], ENV);
    expect(nobody.stderr).toContain('No request of this tenant is in what this gateway keeps');
    const old = await invoke(['usage', '--since', '300d', ...one()], ENV);
    expect(old.stderr).toMatch(/Requests before \d{4}-.* are not kept/);
  });

  it('refuses what it does not understand, and gives no sum without one of the gateways', async () => {
    for (const wrong of [
      ['--time-zone', 'Mars'],
      ['--csv', '--json'],
    ]) {
      expect((await invoke(['usage', '--admin', first.adminUrl, ...wrong], ENV)).exitCode).toBe(2);
    }
    const refused = await invoke(['usage', '--since', 'soon', ...one()], ENV);
    expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining('since')]);
    const away = await invoke(['usage', ...one(), '--admin', 'http://127.0.0.1:9'], ENV);
    expect([away.exitCode, away.stdout]).toEqual([1, '']);
  });

  it('tells what is missing', async () => {
    const gap = {
      from: '2026-01-01T00:00:00.000Z',
      until: '2026-01-01T00:00:01.000Z',
      records: 7,
      reason: 'behind',
    };
    const killed = { ...gap, records: null, reason: 'killed' };
    const body = {
      rows: [],
      by: ['tenant'],
      total: {},
      since: gap.from,
      until: gap.until,
      gaps: [gap, killed],
    };
    const { url } = await startAdmin(() => ({ body: { ...body, note: 'evil\u001b[31m' } }));
    const { stderr } = await invoke(['usage', '--admin', url, '--time-zone', 'Europe/Berlin'], ENV);
    expect(stderr.split('\n')).toEqual([
      'gateway: evil [31m',
      'gateway: 7 records between 2026-01-01T01:00:00+01:00 and 2026-01-01T01:00:01+01:00 are missing: the history could not be written quickly enough, or not at all',
      'gateway: records that ended between 2026-01-01T01:00:00+01:00 and 2026-01-01T01:00:01+01:00 may be missing: the gateway ended without a shutdown; it is the last second at most',
      '',
    ]);
  });
});

describe('gateway records, of the history', () => {
  it('finds a request by its id on whichever gateway it was', async () => {
    const [, record] = second.records;
    const id = ['--request', String(record?.request_id)];
    const { exitCode, stdout } = await invoke(['records', ...id, '--json', ...both()], ENV);
    expect([exitCode, JSON.parse(stdout)]).toMatchObject([
      0,
      { request_id: record?.request_id, tenant: 'other' },
    ]);
    const byTrace = await invoke(['records', '--trace', String(record?.trace_id), ...both()], ENV);
    expect(byTrace.stdout).toMatch(/^TIME \(UTC\) .*\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +200 /);
  });

  it("finds a client's own id as the client wrote it, however long", async () => {
    const id = 'id'.repeat(2_000);
    await (await first.chat({ model: 'm' }, { headers: { 'X-Request-Id': id } })).text();
    const { exitCode, stdout } = await invoke(['records', '--request', id, '--json', ...one()], ENV);
    expect([exitCode, JSON.parse(stdout).client_request_id]).toEqual([0, id.slice(0, 256)]);
  });

  it('says that an id is not here, and since when the gateway has records', async () => {
    const { exitCode, stderr } = await invoke(['records', '--request', '../elsewhere', ...one()], ENV);
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/has the records since \d{4}-/)]);
  });

  it('lists what failed for a tenant in a span, the oldest first, and says if there is more', async () => {
    const search = ['records', '--since', '2h', '--tenant', 'acme', '--json'];
    const failed = await invoke([...search, '--failed', ...both()], ENV);
    expect(JSON.parse(failed.stdout)).toMatchObject({ error_type: 'model_not_found' });
    const all = await invoke([...search, '--limit', '3', ...both()], ENV);
    expect(all.stdout.trimEnd().split('\n')).toHaveLength(3);
    expect(all.stderr).toContain('more records match');
    const empty = await invoke(['records', '--since', '2h', '--tenant', 'nobody', ...one()], ENV);
    expect(empty.stdout).toBe('no records in this span (UTC)\n');
    expect(empty.stderr).toContain('No request of this tenant');
  });

  it('asks for all pages of one span, and says what is kept at the end', async () => {
    const asked: string[] = [];
    const span = { since: '2026-01-01T00:00:00.000Z', until: '2026-01-01T02:00:00.000Z', gaps: [] };
    const { url } = await startAdmin(({ url: path = '' }) => {
      asked.push(path);
      const isFirst = asked.length === 1;
      const history = { ...span, next: isFirst ? 7 : null, note: isFirst ? null : 'Records are not kept.' };
      return { body: { records: [], history } };
    });
    const { stderr } = await invoke(['records', '--since', '2h', '--admin', url], ENV);
    const spans = asked.map((path) => new URL(path, url).searchParams);
    expect(spans.map((each) => [each.get('since'), each.get('until'), each.get('before')])).toEqual([
      ['2h', null, null],
      [span.since, span.until, '7'],
    ]);
    expect(stderr).toBe('gateway: Records are not kept.\n');
  });

  it.each([
    ['--request', ''],
    ['--trace', '..'],
    ['--request', 'a', '--trace', 'b'],
    ['--request', 'a', '--follow'],
    ['--since', '1h', '--limit', '100001'],
    ['--admin', 'http://127.0.0.1:1', '--admin', 'http://127.0.0.1:2'],
  ])('refuses %s %s %s %s', async (...args) => {
    const given = args.filter((arg) => arg !== undefined);
    expect((await invoke(['records', ...given, ...one()], ENV)).exitCode).toBe(2);
  });
});

describe('gateway timeline', () => {
  it('shows what happened on all gateways, the oldest first, with how long it lasted', async () => {
    await first.admin('/admin/replicas/a/drain?reason=new%20weights', { method: 'POST' });
    await second.reload();
    const { stdout, exitCode } = await invoke(['timeline', '--since', '1h', ...both()], ENV);
    expect(exitCode).toBe(0);
    const rows = stdout.trimEnd().split('\n');
    expect(rows[0]).toMatch(/^FROM \(UTC\) +LASTED +GATEWAY +WHAT +OF +DETAILS$/);
    expect(rows[1]).toMatch(/ start /);
    expect(stdout).toMatch(/goes on +http:\S+ +drain +a +by admin, reason new weights/);
    await first.admin('/admin/replicas/a/undrain', { method: 'POST' });
  });

  it.each([
    [1_500, '1.5 s'],
    [49_000, '49 s'],
    [110 * 60_000, '110 min'],
    [2 * 3_600_000, '2.0 h'],
    [47 * 3_600_000, '47.0 h'],
    [60 * 3_600_000, '2.5 d'],
    [730 * 86_400_000, '730.0 d'],
  ])('shows a length of %i ms as %s', async (ms, shown) => {
    const from = new Date(Date.now() - ms).toISOString();
    const until = new Date(Date.parse(from) + ms).toISOString();
    const event = { number: 1, kind: 'drain', subject: 'a', details: {}, from, until };
    const { url } = await startAdmin(() => ({ body: { events: [event], next: null } }));
    const { stdout } = await invoke(['timeline', '--since', '800d', '--admin', url], ENV);
    expect(stdout).toContain(`  ${shown}  `);
  });

  it('says that nothing happened', async () => {
    const { stdout } = await invoke(['timeline', '--since', '9d', '--until', '8d', ...one()], ENV);
    expect(stdout).toBe('nothing happened in this span (UTC)\n');
  });
});

it('shows times on the clock of a zone, also where it has no whole hours', () => {
  expect(new LocalTime('Asia/Kolkata').toRfc3339('2026-01-01T00:00:00Z')).toBe('2026-01-01T05:30:00+05:30');
  expect(new LocalTime('UTC').toCell('2026-01-01T00:00:00Z')).toBe('2026-01-01 00:00:00');
  expect(new LocalTime('UTC').toCell('soon')).toBe('-');
});

it.each([
  // The clock in Berlin is set back from three to two.
  ['Europe/Berlin', '2026-10-25T00:30:00Z', '2026-10-25 02:30:00+02:00'],
  ['Europe/Berlin', '2026-10-25T01:30:00Z', '2026-10-25 02:30:00+01:00'],
  ['Europe/Berlin', '2026-10-25T02:00:00Z', '2026-10-25 03:00:00'],
  ['Europe/Berlin', '2026-10-24T23:59:59Z', '2026-10-25 01:59:59'],
  // By half an hour.
  ['Australia/Lord_Howe', '2026-04-04T14:45:00Z', '2026-04-05 01:45:00+11:00'],
  ['Australia/Lord_Howe', '2026-04-04T15:15:00Z', '2026-04-05 01:45:00+10:30'],
  ['UTC', '2026-10-25T01:30:00Z', '2026-10-25 01:30:00'],
])('a table tells apart what the clock shows twice, in %s at %s', (zone, time, cell) => {
  expect(new LocalTime(zone).toCell(time)).toBe(cell);
});

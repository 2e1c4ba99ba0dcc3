import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createStatementKey, type Statement, type StatementReport } from '#statement';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { invoke } from '../cli/invoke.ts';
import { hasPython, proveWithPython } from './prove-with-python.ts';

const ENV = { SVC_ADMIN_TOKEN: ADMIN_TOKEN };
const MONTH = new Date().toISOString().slice(0, 7);
/** Requests of acme at the first gateway and at the second, among those of others. */
const SENT: readonly (readonly string[])[] = [
  ['acme', 'other', 'acme', 'acme', 'other', 'acme'],
  ['other', 'acme', 'acme'],
];

let folder: string;
let keyFile: string;
let publicKey: string;
let replica: FakeReplica;
let gateways: readonly StartedGateway[];
let statementFile: string;
let statement: Statement;
/** The lines of the records of both gateways, one record a line. */
let lines: readonly string[];

interface SpanJson {
  attributes: { key: string; value: Record<string, unknown> }[];
}

async function startWith(tenants: readonly string[]): Promise<StartedGateway> {
  const gateway = await startGateway({
    replicas: [{ name: 'a', url: replica.url, gpu_count: 2, gpu_hour_price: 3.7, models: ['m', 'n'] }],
    config: {
      currency: 'EUR',
      export: { to: 'file', interval: '1ms' },
      statement_key: keyFile,
      history: {},
    },
  });
  for (const [index, tenant] of tenants.entries()) {
    const sent = await gateway.chat({ model: 'mn'[index % 2] }, { headers: { 'X-Tenant': tenant } });
    await sent.text();
    await gateway.waitForRecords(index + 1);
  }
  const exported = async () => expect((await gateway.stats()).exported).toBe(tenants.length);
  await vi.waitFor(exported, 30_000);
  return gateway;
}

const admins = () => gateways.flatMap(({ adminUrl }) => ['--admin', adminUrl]);
const asked = (...more: readonly string[]) => [
  ...['statement', '--tenant', 'acme', '--month', MONTH, '--time-zone', 'UTC'],
  ...more,
];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'statement-'));
  keyFile = join(folder, 'key.pem');
  const created = await invoke(['key', 'create', '--statement', '--output', keyFile]);
  publicKey = created.stdout.trim();
  replica = await startFakeReplica();
  const [first = [], second = []] = SENT;
  gateways = [await startWith(first), await startWith(second)];
  statementFile = join(folder, 'acme.json');
  const made = await invoke([...asked('--output', statementFile, '--sign-key', keyFile), ...admins()], ENV);
  expect([made.exitCode, made.stderr]).toEqual([0, expect.stringContaining('month')]);
  statement = JSON.parse(await readFile(statementFile, 'utf8'));
  const texts = await Promise.all(
    gateways.map(({ stateDir }) => readFile(join(stateDir, 'records.jsonl'), 'utf8')),
  );
  lines = texts.flatMap((text) => text.trimEnd().split('\n')).flatMap(toSingleLines);
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()));
  await replica.close();
  await rm(folder, { recursive: true, force: true });
});

/** A line for each span. */
function toSingleLines(line: string): readonly string[] {
  const { resourceSpans } = JSON.parse(line);
  const [{ resource, scopeSpans }] = resourceSpans;
  const spans: readonly SpanJson[] = scopeSpans.flatMap((each: { spans: SpanJson[] }) => each.spans);
  return spans
    .filter(({ attributes }) => attributes.some(({ key }) => key === 'gateway.seq'))
    .map((span) => JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans: [span] }] }] }));
}

const isOfAcme = (line: string) => line.includes('"gateway.tenant","value":{"stringValue":"acme"}');
/** Where the n-th record of acme is. */
const placeOf = (index: number) =>
  lines.findIndex((line, at) => isOfAcme(line) && lines.slice(0, at).filter(isOfAcme).length === index);
const acmeLine = (index: number) => lines[placeOf(index)] ?? '';
const numberOf = (line: string) => /"gateway\.seq","value":\{"intValue":"?(\d+)/.exec(line)?.[1] ?? '';
const without = (index: number) => lines.toSpliced(placeOf(index), 1);
const withLine = (index: number, line: string) => lines.with(placeOf(index), line);

/** Runs both verifiers over these lines. `change`: of the statement. */
async function prove(
  records: readonly string[],
  change: (text: string) => string = (text) => text,
  key = publicKey,
) {
  const file = join(folder, 'records.jsonl');
  const changed = join(folder, 'changed.json');
  await writeFile(file, records.map((line) => `${line}\n`).join(''));
  await writeFile(changed, change(await readFile(statementFile, 'utf8')));
  const ours = await invoke(['verify', '--statement', changed, '--public-key', key, '--json', file]);
  const report: StatementReport = JSON.parse(ours.stdout);
  expect(report.proven).toBe(ours.exitCode === 0);
  const text = await invoke(['verify', '--statement', changed, '--public-key', key, file]);
  const python = hasPython ? proveWithPython(changed, key, [file]) : null;
  if (python !== null) expect(python.exitCode).toBe(ours.exitCode);
  return { ...ours, report, text: text.stdout, python: python?.lines };
}

const found = (numbers: readonly string[]) => ({ count: numbers.length, numbers });

describe('a statement', () => {
  it('says what a tenant used by day and model, of all gateways, with the numbers of its records', () => {
    expect(statement.total.requests).toBe(6);
    expect(statement.rows.map(({ model }) => model)).toEqual(['m', 'n']);
    expect(statement.rows.reduce((sum, row) => sum + row.requests, 0)).toBe(6);
    expect(statement.records.map(({ numbers }) => numbers.join()).toSorted()).toEqual(['1,3-4,6', '2-3']);
    const [own] = gateways.map(({ records }) => records.filter(({ tenant }) => tenant === 'acme'));
    const cost = own?.reduce((sum, record) => sum + (record.cost ?? 0), 0) ?? 0;
    expect(cost).toBeGreaterThan(0);
    const all = gateways.flatMap(({ records }) => records).filter(({ tenant }) => tenant === 'acme');
    const gpuSeconds = all.reduce((sum, record) => sum + (record.gpu_seconds ?? 0), 0);
    expect(Number(statement.total.gpu_seconds)).toBeCloseTo(gpuSeconds, 6);
    expect(Number(statement.total.costs.EUR)).toBeCloseTo((gpuSeconds / 3_600) * 3.7, 6);
    expect(statement.public_key).toBe(publicKey);
  });

  it('says that the month is not over, and from when on records are kept', () => {
    expect(statement.complete).toBe(false);
    expect(statement.lacks.map(({ what }) => what)).toEqual([
      'month_not_over',
      ...SENT.flatMap(() => ['records_not_kept', 'losses_not_kept']),
    ]);
  });

  it('is proven by the records, in any order, and by those of its tenant alone', async () => {
    for (const records of [lines, lines.toReversed(), lines.filter(isOfAcme)]) {
      const { report, text, python } = await prove(records);
      expect(report).toMatchObject({ proven: true, signature: 'valid', key: 'as_given', proven_records: 6 });
      expect(text).toMatch(/the statement itself says: the month is not over.*\nProven\.\n$/s);
      if (python !== undefined) expect(python).toEqual(['Proven.']);
    }
  });

  it('shows the same as a table and as CSV, without a key', async () => {
    const table = await invoke([...asked(), ...admins()], ENV);
    expect(table.stderr).toContain('the month is not over');
    expect(table.stdout).toMatch(/^acme, \d{4}-\d\d: .* \(UTC\)\nDAY +MODEL +REQUESTS +IN +CACHED +OUT/);
    expect(table.stdout).toMatch(/\ntotal +6 /);
    const csv = await invoke([...asked('--csv'), ...admins()], ENV);
    const [heads, ...rows] = csv.stdout.trimEnd().split('\r\n');
    expect(heads).toBe(
      'day,model,requests,prompt_tokens,completion_tokens,cached_tokens,reasoning_tokens,gpu_seconds,cost_EUR',
    );
    expect(rows).toHaveLength(2);
  });
});

describe('both verifiers say', () => {
  it('which record is missing', async () => {
    const { exitCode, report, text, python } = await prove(without(1));
    const number = numberOf(acmeLine(1));
    expect([exitCode, report.instances]).toMatchObject([1, [{ missing: found([number]) }]]);
    expect(text).toMatch(new RegExp(`\\n  missing: \\S+ ${number} \\(1\\)\\n.*Not proven\\.\\n$`, 's'));
    if (python !== undefined) expect(python[0]).toMatch(new RegExp(`^missing \\S+ ${number}$`));
  });

  it('which record is doubled', async () => {
    const { report, python } = await prove([...lines, acmeLine(2)]);
    const number = numberOf(acmeLine(2));
    expect(report.instances).toMatchObject([{ doubled: found([number]) }]);
    if (python !== undefined) expect(python[0]).toMatch(new RegExp(`^doubled \\S+ ${number}$`));
  });

  it.each([
    ['tokens', /("gateway\.prompt_tokens","value":\{"intValue":"?)\d+/, '$199999'],
    ['cost', /("gateway\.cost","value":\{"doubleValue":)[\d.e-]+/, '$10.5'],
    ['time', /("gateway\.ts","value":\{"stringValue":"\d{4}-\d\d-\d\dT\d\d:)[\d:.]+/, '$159:59.999'],
  ])('which record is changed, in its %s', async (_, pattern, replacement) => {
    const line = acmeLine(0).replace(pattern, replacement);
    expect(line).not.toBe(acmeLine(0));
    const { report, python } = await prove(withLine(0, line));
    const number = numberOf(line);
    expect(report.instances).toMatchObject([{ changed: found([number]) }]);
    if (python !== undefined) expect(python[0]).toMatch(new RegExp(`^changed \\S+ ${number}$`));
  });

  it('which record is of somebody else', async () => {
    const line = acmeLine(4).replace('"stringValue":"acme"', '"stringValue":"other"');
    const { report, python } = await prove(withLine(4, line));
    const number = numberOf(line);
    expect(report.instances).toMatchObject([{ of_another_tenant: found([number]) }]);
    if (python !== undefined)
      expect(python).toContainEqual(expect.stringMatching(new RegExp(`^of somebody else \\S+ ${number}$`)));
  });

  it('which record the statement leaves out', async () => {
    const other = lines.find((line) => !isOfAcme(line)) ?? '';
    const moved = other.replace('"stringValue":"other"', '"stringValue":"acme"');
    const { report, python } = await prove(lines.map((line) => (line === other ? moved : line)));
    expect(report.instances).toMatchObject([{ unlisted: found([numberOf(other)]) }]);
    if (python !== undefined) expect(python[0]).toMatch(/^not in the statement /);
  });

  it.each([
    ['a sum', (text: string) => text.replace('"requests": 6', '"requests": 7')],
    ['the tenant', (text: string) => text.replace('"tenant": "acme"', '"tenant": "Acme"')],
    [
      'what it lacks',
      (text: string) =>
        text
          .replace('"what": "month_not_over"', '"what": "month_not_over" ')
          .replace('"complete": false', '"complete": true'),
    ],
  ])('that %s of the statement was edited', async (_, change) => {
    const { report, python } = await prove(lines, change);
    expect(report).toMatchObject({ proven: false, signature: 'wrong' });
    if (python !== undefined) expect(python[0]).toMatch(/^signature wrong/);
  });

  it('that it is signed with another key', async () => {
    const other = createStatementKey().publicKey;
    const { report, text, python } = await prove(lines, undefined, other);
    expect(report).toMatchObject({ proven: false, signature: 'valid', key: 'another' });
    expect(text).toContain('WHICH IS NOT THE GIVEN ONE');
    if (python !== undefined) expect(python[0]).toMatch(/^signature wrong, or of another key/);
  });
});

describe('the key', () => {
  it('is in a file that only its owner can read, is not printed, and never overwritten', async () => {
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
    expect(publicKey).toMatch(/^[A-Za-z0-9+/]{43}=$/);
    const again = await invoke(['key', 'create', '--statement', '--output', keyFile]);
    expect([again.exitCode, again.stderr]).toEqual([
      2,
      expect.stringContaining('it is there already, and is not overwritten'),
    ]);
    const json = await invoke(['key', 'create', '--statement', '--json', '--output', join(folder, 'k2')]);
    expect(JSON.parse(json.stdout)).toEqual({ file: join(folder, 'k2'), public_key: expect.any(String) });
    for (const wrong of [['--tenant', 'acme'], ['name']]) {
      expect((await invoke(['key', 'create', '--statement', ...wrong])).exitCode).toBe(2);
    }
  });

  it('is shown by the admin API, and a statement that is signed with another one is refused', async () => {
    const [first] = gateways;
    const answer = await first?.admin('/admin/statement-key');
    expect(await answer?.json()).toEqual({ public_key: publicKey });
    const other = join(folder, 'other.pem');
    await writeFile(other, createStatementKey().pem);
    const { exitCode, stderr } = await invoke([...asked('--json', '--sign-key', other), ...admins()], ENV);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('/admin/statement-key')]);
  });

  it('comes from a variable, too, and without one there is only a draft', async () => {
    const env = { ...ENV, SVC_STATEMENT_KEY_FILE: keyFile };
    const signed = await invoke([...asked('--json'), ...admins()], env);
    expect(JSON.parse(signed.stdout).public_key).toBe(publicKey);
    const none = await invoke([...asked('--json'), ...admins()], ENV);
    expect([none.exitCode, none.stderr]).toEqual([2, expect.stringContaining('--sign-key')]);
    const draft = await invoke([...asked('--json', '--unsigned'), ...admins()], ENV);
    const file = join(folder, 'draft.json');
    await writeFile(file, draft.stdout);
    const records = join(folder, 'all.jsonl');
    await writeFile(records, lines.map((line) => `${line}\n`).join(''));
    const proof = await invoke(['verify', '--statement', file, records]);
    expect([proof.exitCode, proof.stdout]).toEqual([1, expect.stringContaining('NOT SIGNED')]);
  });
});

describe('the command line', () => {
  it.each([
    [['--month', '2026-13']],
    [['--time-zone', 'Mars']],
    [['--month', '2999-01']],
    [['--csv', '--json']],
    [['--tenant', '']],
  ])('refuses %j', async ([option = '', value = '']) => {
    const args = asked('--unsigned');
    const at = args.indexOf(option);
    const wrong = at === -1 ? [...args, option, value] : args.with(at + 1, value);
    const { exitCode, stderr } = await invoke([...wrong, ...admins()], ENV);
    expect([exitCode, stderr]).toEqual([2, expect.not.stringMatching(/given twice/)]);
  });

  it('says that it knows no request of a tenant, whose name may be wrong', async () => {
    const of = (tenant: string, ...more: readonly string[]) =>
      invoke([...asked(...more).with(2, tenant), ...admins()], ENV);
    const { exitCode, stdout, stderr } = await of('acne');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('acne');
    expect(stderr).toContain('gateway: no request of this tenant and month is kept: check the name\n');
    expect((await of('acme')).stderr).not.toContain('check the name');
    const marked = await of('acme\u200f', '--csv');
    expect(marked.stderr).not.toContain('check the name');
    expect(marked.stdout).toBe((await of('acme', '--csv')).stdout);
  });

  it('makes no statement without one of the gateways or without a history, and counts one with two names once', async () => {
    const away = await invoke([...asked(), ...admins(), '--admin', 'http://127.0.0.1:9'], ENV);
    expect([away.exitCode, away.stdout]).toEqual([1, '']);
    const [first] = gateways;
    const sameTwice = [
      '--admin',
      first?.adminUrl ?? '',
      '--admin',
      `${first?.adminUrl}`.replace('127.0.0.1', 'localhost'),
    ];
    const same = await invoke([...asked(), ...sameTwice], ENV);
    expect([same.exitCode, same.stderr]).toEqual([0, expect.stringContaining('it counts once')]);
    await using off = await startGateway({ replicas: [replica], config: { history: 'off' } });
    const none = await invoke([...asked(), '--admin', off.adminUrl], ENV);
    expect([none.exitCode, none.stderr]).toEqual([1, expect.stringContaining('history_off')]);
    expect((await off.admin('/admin/statement-key')).status).toBe(404);
  });

  it('verifies nothing but a statement', async () => {
    const file = join(folder, 'none.json');
    for (const text of [
      '',
      '{}',
      '[]',
      JSON.stringify({ ...statement, rows: 1 }),
      JSON.stringify({ ...statement, records: [{ instance: 'a', numbers: ['1-9'], digests: '' }] }),
    ]) {
      await writeFile(file, text);
      const { exitCode, stderr } = await invoke(['verify', '--statement', file, file]);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('cannot use')]);
    }
    for (const wrong of [['--sums', file], ['--partial']]) {
      expect((await invoke(['verify', '--statement', file, ...wrong, file])).exitCode).toBe(2);
    }
    expect((await invoke(['verify', '--public-key', publicKey, file])).exitCode).toBe(2);
    const short = await invoke(['verify', '--statement', file, '--public-key', 'AAAA', file]);
    expect(short.exitCode).toBe(2);
    expect(short.stderr).toMatch(
      /--public-key AAAA is no public key in base64 \(44 characters\), and as a file it .*: there is no such file/,
    );
  });
});

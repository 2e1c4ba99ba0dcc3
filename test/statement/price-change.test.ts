import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import type { Statement, StatementReport } from '#statement';
import { answerJson, COMPLETION, type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { invoke } from '../cli/invoke.ts';
import { hasPython, proveWithPython } from './prove-with-python.ts';

const MONTH = new Date().toISOString().slice(0, 7);
const GPUS = 4;
/** What an hour of one GPU costs, and how many requests come at that price. */
const OLD = { price: 3_600, count: 3 };
const NEW = { price: 36_000, count: 2 };
/** So many come after a restart, which is what another currency needs. */
const IN_USD = 2;
const SECONDS_PER_HOUR = 3_600;
/** The digits of a cost in a statement. */
const UNITS = 1e12;

let folder: string;
let publicKey: string;
let replica: FakeReplica;
let gateway: StartedGateway;
let records: readonly Readonly<RequestRecord>[];
let statementFile: string;

const configAt = (gpu_hour_price: number, currency: string) => ({
  replicas: [{ name: 'a', url: replica.url, gpu_count: GPUS, gpu_hour_price }],
  config: { currency, export: { to: 'file', interval: '1ms' }, history: {} },
  stateDir: join(folder, 'state'),
});
/** The records of a gateway, as soon as they are exported. */
async function untilExported(count: number): Promise<StartedGateway['records']> {
  const own = await gateway.waitForRecords(count);
  await vi.waitFor(async () => expect((await gateway.stats()).exported).toBe(count), 30_000);
  return own;
}
const send = async () => await (await gateway.chat({}, { headers: { 'X-Tenant': 'acme' } })).text();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'price-'));
  const keyFile = join(folder, 'key.pem');
  publicKey = (await invoke(['key', 'create', '--statement', '--output', keyFile])).stdout.trim();
  replica = await startFakeReplica();
  gateway = await startGateway(configAt(OLD.price, 'EUR'));
  for (let index = 0; index < OLD.count; index++) await send();
  // One is at the replica while the price changes.
  const released = Promise.withResolvers<void>();
  replica.answerOnce(async (exchange) => {
    await released.promise;
    await answerJson(COMPLETION)(exchange);
  });
  const held = send();
  await replica.untilRequests(OLD.count + 1);
  gateway.writeConfig(configAt(NEW.price, 'EUR'));
  expect((await gateway.reload()).status).toBe(200);
  released.resolve();
  await held;
  for (let index = 0; index < NEW.count; index++) await send();
  const inEuros = await untilExported(OLD.count + 1 + NEW.count);
  await gateway.close();
  gateway = await startGateway(configAt(OLD.price, 'USD'));
  for (let index = 0; index < IN_USD; index++) await send();
  records = [...inEuros, ...(await untilExported(IN_USD))];
  statementFile = join(folder, 'acme.json');
  const asked = ['statement', '--tenant', 'acme', '--month', MONTH, '--time-zone', 'UTC'];
  const signed = ['--output', statementFile, '--sign-key', keyFile, '--admin', gateway.adminUrl];
  const made = await invoke([...asked, ...signed], { SVC_ADMIN_TOKEN: ADMIN_TOKEN });
  expect(made.exitCode).toBe(0);
});
afterAll(async () => {
  await gateway.close();
  await replica.close();
  await rm(folder, { recursive: true, force: true });
});

/** Runs both verifiers over these records; they must agree. */
async function prove(text: string): Promise<StatementReport> {
  const file = join(folder, 'records.jsonl');
  await writeFile(file, text);
  const args = ['verify', '--statement', statementFile, '--public-key', publicKey, '--json', file];
  const { exitCode, stdout } = await invoke(args);
  if (hasPython) expect(proveWithPython(statementFile, publicKey, [file]).exitCode).toBe(exitCode);
  return JSON.parse(stdout);
}

const readExported = async () => await readFile(join(gateway.stateDir, 'records.jsonl'), 'utf8');

/** What an hour of one GPU has cost a request, on average. */
const priceOf = ({ cost = 0, gpu_seconds = 0 }: Readonly<RequestRecord>) =>
  (cost * SECONDS_PER_HOUR) / gpu_seconds;

it('each record keeps the price of its own time when a reload changes the price', () => {
  const prices = records.map(priceOf);
  for (const price of prices.slice(0, OLD.count)) expect(price).toBeCloseTo(OLD.price, 3);
  for (const price of prices.slice(OLD.count + 1, -IN_USD)) expect(price).toBeCloseTo(NEW.price, 3);
  for (const price of prices.slice(-IN_USD)) expect(price).toBeCloseTo(OLD.price, 3);
  const across = prices[OLD.count] ?? 0;
  expect(across).toBeGreaterThan(OLD.price);
  expect(across).toBeLessThan(NEW.price);
});

it('a statement of the month in which the price changed sums the costs of its records, and both verifiers prove it', async () => {
  const statement: Statement = JSON.parse(await readFile(statementFile, 'utf8'));
  const { requests, costs } = statement.total;
  expect([requests, Object.keys(costs)]).toEqual([records.length, ['EUR', 'USD']]);
  for (const [currency, stated] of Object.entries(costs)) {
    const own = records.filter((record) => record.currency === currency);
    const units = own.map(({ cost = 0 }) => BigInt(Math.floor(cost * UNITS + 0.5)));
    expect(BigInt(stated.replace('.', ''))).toBe(units.reduce((all, each) => all + each, 0n));
  }
  const report = await prove(await readExported());
  expect(report).toMatchObject({ proven: true, proven_records: records.length, costs });
});

it('both verifiers find a record that was given the new price afterwards', async () => {
  const [first] = records;
  const text = await readExported();
  const repriced = text.replace(String(first?.cost), String(((first?.cost ?? 0) * NEW.price) / OLD.price));
  expect(repriced).not.toBe(text);
  const report = await prove(repriced);
  expect(report).toMatchObject({ proven: false, instances: [{ changed: { count: 1, numbers: ['1'] } }] });
});

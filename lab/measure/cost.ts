import { once } from 'node:events';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_TOKEN, askAdmin, startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { parseSamples, sumBy } from '#testkit/reading/prometheus-text.ts';

const { seconds } = startProgram(
  `npm run lab -- measure/cost [--seconds SECONDS]
  Whether all that requests cost and all that is idle is hours by price, to 0.1 %, before replicas whose busy time is known,
  with two workers, another price in the middle, clients that leave, and requests without a record.`,
  { seconds: { type: 'string', default: '60' } },
);

const GPUS = 8;
const PRICES = [3.6, 7.2] as const;
const MS_PER_HOUR = 3_600_000;
const TOLERANCE = 0.001;
/** A request is long beside what it takes to reach the replica. */
const REQUEST_MS = 2_000;
const PAUSE_MS = 500;
const TENANTS = ['acme', 'globex', 'initech'];

/** A span of time whose ends are known to lie between two readings of the clock. */
interface Moment {
  readonly fromMs: number;
  readonly untilMs: number;
}

await using cleanUp = new AsyncDisposableStack();
const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-cost-'))).path;
let heldCount = 0;
let busyMs = 0;
let busySinceMs = 0;
/** Busy while it has a request, as the gateway reckons, but by the clock of the replica. */
const replica = createServer((incoming, response) => {
  incoming.resume();
  if (heldCount++ === 0) busySinceMs = performance.now();
  const isInference = incoming.method === 'POST';
  const timer = setTimeout(
    () => response.end('{"object":"list","data":[{"id":"m"}],"choices":[]}'),
    isInference ? REQUEST_MS : 0,
  );
  response.once('close', () => {
    clearTimeout(timer);
    if (--heldCount === 0) busyMs += performance.now() - busySinceMs;
  });
}).listen(0, '127.0.0.1');
cleanUp.defer(() => void replica.closeAllConnections());
cleanUp.defer(() => void replica.close());
await once(replica, 'listening');
const url = `http://127.0.0.1:${(replica.address() as AddressInfo).port}`;

const configAt = (price: number) => ({
  gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0', workers: 2 },
  state_dir: join(folder, 'state'),
  export: { to: 'file' },
  currency: 'EUR',
  gpu_hour_price: { H100: price },
  replicas: [{ name: 'a', url, models: ['m'], engine: 'vllm', gpu_model: 'H100', gpu_count: GPUS }],
});
const gateway = cleanUp.use(await startGateway(folder, configAt(PRICES[0])));

/** The clock before and after something. */
async function during<T>(act: () => Promise<T>): Promise<Moment & { readonly result: T }> {
  const fromMs = performance.now();
  const result = await act();
  return { fromMs, result, untilMs: performance.now() };
}

/** The quickest of several readings: a busy machine holds some of them up. */
async function readQuickly() {
  const readings = [];
  for (let reading = 0; reading < 20; reading++) readings.push(await during(readSums));
  const lengthOf = ({ fromMs, untilMs }: Moment) => untilMs - fromMs;
  return readings.reduce((best, each) => (lengthOf(each) < lengthOf(best) ? each : best));
}

async function readSums() {
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  const text = await (await fetch(`${gateway.adminUrl}/metrics`, { headers })).text();
  const samples = parseSamples(text);
  const of = (name: string) => sumBy(samples, name, 'gateway_currency').EUR ?? 0;
  return {
    tenants: of('gateway_cost_total'),
    busy: of('gateway_replica_cost_total'),
    unrecorded: of('gateway_replica_cost_unrecorded_total'),
    idle: of('gateway_replica_cost_idle_total'),
    byTenant: sumBy(samples, 'gateway_cost_total', 'gateway_tenant'),
  };
}

/** Several clients at a time; every fifth request is left by its client, and every seventh has no record. */
async function sendFor(ms: number): Promise<void> {
  const untilMs = performance.now() + ms - REQUEST_MS;
  for (let round = 0; performance.now() < untilMs; round++) {
    await Promise.all(TENANTS.map((tenant, index) => send(tenant, round * TENANTS.length + index)));
    await sleep(PAUSE_MS);
  }
}

async function send(tenant: string, number: number): Promise<void> {
  if (number % 7 === 6) {
    await (await fetch(`${gateway.url}/v1/models`)).text();
    return;
  }
  const signal = number % 5 === 4 ? AbortSignal.timeout(REQUEST_MS / 2) : null;
  const body = JSON.stringify({ model: 'm', messages: [] });
  try {
    await (
      await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        body,
        signal,
        headers: { 'X-Tenant': tenant, 'Content-Type': 'application/json' },
      })
    ).text();
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
}

const halfMs = (1000 * toCount(seconds)) / 2;
const before = await readQuickly();
await sendFor(halfMs / 2);
const requests = sendFor(halfMs);
await sleep(halfMs / 2);
// Requests are in flight: each keeps the old price up to here.
const middle = await readQuickly();
await writeFile(join(folder, 'gateway.yaml'), JSON.stringify(configAt(PRICES[1])));
const reloaded = await during(() => askAdmin(gateway.adminUrl, 'POST', '/admin/reload'));
await requests;
await gateway.untilDelivered();
const after = await readQuickly();

type Reading = Awaited<ReturnType<typeof readQuickly>>;
const grown = (
  name: 'tenants' | 'busy' | 'unrecorded' | 'idle',
  from: Reading = before,
  until: Reading = after,
) => until.result[name] - from.result[name];
const costOf = (ms: number, price: number) => (GPUS * ms * price) / MS_PER_HOUR;
/** Between the least and the most that the readings of the clock allow. */
const atOnePrice = [
  costOf(middle.fromMs - before.untilMs, PRICES[0]),
  costOf(middle.untilMs - before.fromMs, PRICES[0]),
] as const;
const atBoth = [
  costOf(reloaded.untilMs - before.untilMs, PRICES[0]) + costOf(after.fromMs - reloaded.untilMs, PRICES[1]),
  costOf(reloaded.fromMs - before.fromMs, PRICES[0]) + costOf(after.untilMs - reloaded.fromMs, PRICES[1]),
] as const;
const first = grown('busy', before, middle) + grown('idle', before, middle);
const all = grown('tenants') + grown('unrecorded') + grown('idle');
const { records } = (await askAdmin(gateway.adminUrl, 'GET', '/admin/records?limit=500')) as {
  readonly records: readonly { readonly cost: number; readonly gpu_seconds: number }[];
};
const ofRecords = records.reduce((sum, { cost }) => sum + cost, 0);
const gpuSeconds = records.reduce((sum, { gpu_seconds }) => sum + gpu_seconds, 0);

const show = (amount: number) => `${amount.toFixed(6)} EUR`;
for (const [tenant, amount] of Object.entries(after.result.byTenant))
  console.log(`${tenant.padEnd(20)}${show(amount)}`);
console.log(`${'unrecorded'.padEnd(20)}${show(grown('unrecorded'))}`);
console.log(`${'idle'.padEnd(20)}${show(grown('idle'))}`);
console.log(`${'together'.padEnd(20)}${show(all)}`);
console.log(`${'hours by price'.padEnd(20)}${atBoth.map(show).join(' to ')}`);
console.log(`before the new price: ${show(first)}, hours by price ${atOnePrice.map(show).join(' to ')}`);
console.log(
  `${records.length} records: ${show(ofRecords)}, ${gpuSeconds.toFixed(3)} GPU seconds; the replica was busy for ${((GPUS * busyMs) / 1000).toFixed(3)}`,
);

const isWithin = (value: number, low: number, high: number) =>
  value >= low * (1 - TOLERANCE) && value <= high * (1 + TOLERANCE);
const problems = [
  ...(isWithin(all, ...atBoth) ? [] : ['the costs and what is idle are not hours by price']),
  ...(isWithin(first, ...atOnePrice) ? [] : ['what is busy and what is idle is not hours by price']),
  ...(isWithin(grown('tenants') + grown('unrecorded'), grown('busy'), grown('busy'))
    ? []
    : ['the tenants are not what was busy']),
  ...(isWithin(ofRecords, after.result.tenants, after.result.tenants)
    ? []
    : ['the records are not the tenants']),
];
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;

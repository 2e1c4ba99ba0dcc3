import { mkdtempDisposable, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AttributesDigester } from '#otel/otlp';
import { LEDGER, RECORD_FIELDS } from '#otel/record/registry';
import { readSpans, SpanValues } from '#records/files';
import { createSimulatedReplica } from '#simulate';
import { askAdmin, type GatewayProcess, startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { printFailures, printFigures } from '#testkit/programs/results.ts';
import { toRandom } from '#testkit/random.ts';
import { type LedgerFacts, toLedgerFacts } from './ledger-facts.ts';

const values = startProgram(
  `npm run lab -- history/kills [options]
  Sends mixed requests to a gateway that is killed again and again, or ends in order, and compares the sums of its history with
  those of its ledger. Exits with 1 if a sum differs, a record is missing that ended more than a second before a kill, or
  one is there twice.
  --minutes N  (default 10)
  --clients N  (default 6)
  --seed N     (default 1)`,
  {
    minutes: { type: 'string', default: '10' },
    clients: { type: 'string', default: '6' },
    seed: { type: 'string', default: '1' },
  },
);

/** What is missing at most at the end of a run that was killed. */
const MAY_LACK_MS = 1_000;
/** The gateway looks at records once per second, and a busy machine takes longer. */
const SLACK_MS = 2_000;
const MIN_RUN_MS = 3_000;
const MORE_RUN_MS = 12_000;
const KILLED_SHARE = 0.75;

/** A record of the history, as a statement lists it. */
interface Stated {
  readonly instance: string;
  readonly seq: number;
  readonly ts: string;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly digest: string;
}

const failures: string[] = [];
const random = toRandom(toCount(values.seed));
const tenants = ['acme', 'globex', 'initech'];
const counts = { runs: 0, kills: 0, answered: 0, left: 0 };

await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-kills-'));
const replicas = ['a', 'b'].map((name) =>
  createSimulatedReplica({ name, models: ['m'], ttftMs: 10, gapMs: 2, tokens: 12, errorRate: 0.02 }),
);
const started = await Promise.all(replicas.map((replica) => replica.start()));
const config = {
  gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
  state_dir: join(folder.path, 'state'),
  replicas: started.map(({ url }, index) => ({
    name: `r${index}`,
    url,
    models: ['m'],
    engine: 'vllm',
    gpu_count: 1,
    gpu_hour_price: 2.5,
  })),
  export: { to: 'file', interval: '100ms', ledger: { interval: '500ms' } },
  shutdown: { delay: '0s', flush: '5s' },
};

/** Sends requests until `isOver`: whole answers, streams, streams that are left, and requests for no model. */
async function load(gateway: GatewayProcess, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const kind = random();
    const leaving = new AbortController();
    const body = {
      model: kind > 0.95 ? 'none' : 'm',
      stream: kind < 0.5,
      messages: [{ role: 'user', content: 'x '.repeat(1 + Math.floor(random() * 200)) }],
    };
    try {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'X-Tenant': tenants[Math.floor(random() * tenants.length)] ?? '' },
        body: JSON.stringify(body),
        signal: leaving.signal,
      });
      if (kind < 0.1) {
        await response.body?.getReader().read();
        leaving.abort();
        counts.left += 1;
      } else await response.arrayBuffer();
      counts.answered += 1;
    } catch {
      // The gateway was killed, or the client has left.
    }
    await sleep(random() * 20);
  }
}

/** Runs the gateway once. Returns when it was killed: epoch milliseconds; null: it ended in order. */
async function runOnce(
  runMs: number,
): Promise<{ readonly startMs: number; readonly killedMs: number | null }> {
  const gateway = await startGateway(folder.path, config);
  const startMs = Date.now();
  counts.runs += 1;
  let isOver = false;
  const clients = Array.from({ length: toCount(values.clients) }, () => load(gateway, () => isOver));
  await sleep(runMs);
  const isKill = random() < KILLED_SHARE;
  const killedMs = isKill ? Date.now() : null;
  if (isKill) counts.kills += 1;
  else isOver = true;
  await gateway.end(isKill ? 'SIGKILL' : 'SIGTERM');
  isOver = true;
  await Promise.all(clients);
  return { startMs, killedMs };
}

async function readStated(gateway: GatewayProcess, tenant: string): Promise<readonly Stated[]> {
  const found: Stated[] = [];
  for (let before: number | null = null; ; ) {
    const params = new URLSearchParams({
      tenant,
      since: '1d',
      ...(before === null ? {} : { before: `${before}` }),
    });
    const page = (await askAdmin(gateway.adminUrl, 'GET', `/admin/statement-records?${params}`)) as {
      records: Stated[];
      next: number | null;
    };
    found.push(...page.records);
    if (page.next === null) return found;
    before = page.next;
  }
}

/** What the gateway has exported. */
async function readExported() {
  const digester = new AttributesDigester();
  /** The digests of the records, by instance and number. */
  const records = new Map<string, string>();
  const ledgers: LedgerFacts[] = [];
  const state = join(folder.path, 'state');
  for (const name of (await readdir(state)).filter((file) => /^records.*\.jsonl$/.test(file))) {
    for (const line of (await readFile(join(state, name))).toString().split('\n')) {
      for (const span of line === '' ? [] : (readSpans(Buffer.from(line)) ?? [])) {
        const values = new SpanValues(span);
        const seq = values.count(RECORD_FIELDS.seq.name);
        const digest = digester.digestJsonSpan(span)?.subarray(0, 16).toString('base64');
        if (values.has(LEDGER.number)) ledgers.push(toLedgerFacts(values));
        else if (seq !== undefined)
          records.set(`${values.text(RECORD_FIELDS.instance.name)} ${seq}`, digest ?? '');
      }
    }
  }
  return { records, ledgers };
}

const ends: { readonly startMs: number; readonly killedMs: number | null }[] = [];
const endMs = Date.now() + toCount(values.minutes) * 60_000;
do ends.push(await runOnce(MIN_RUN_MS + random() * MORE_RUN_MS));
while (Date.now() < endMs);

const gateway = await startGateway(folder.path, config);
const stated = (await Promise.all(tenants.map((tenant) => readStated(gateway, tenant)))).flat();
const { total } = (await askAdmin(gateway.adminUrl, 'GET', '/admin/usage?since=1d&by=tenant')) as {
  total: Readonly<Record<string, number>>;
};
await gateway.end('SIGTERM');
await Promise.all(replicas.map((replica) => replica.close()));
const { records, ledgers } = await readExported();

const inHistory = new Map(stated.map((record) => [`${record.instance} ${record.seq}`, record]));
if (inHistory.size !== stated.length)
  failures.push(`${stated.length - inHistory.size} records are in the history twice`);
const sum = (name: 'prompt_tokens' | 'completion_tokens') =>
  stated.reduce((all, record) => all + record[name], 0);
for (const [name, expected] of [
  ['requests', stated.length],
  ['prompt_tokens', sum('prompt_tokens')],
  ['completion_tokens', sum('completion_tokens')],
] as const) {
  if (total[name] !== expected)
    failures.push(`the history sums ${total[name]} ${name}, its records ${expected}`);
}

let [compared, same, lacking] = [0, 0, 0];
for (const [key, record] of inHistory) {
  const exported = records.get(key);
  if (exported === undefined) continue;
  compared += 1;
  if (exported === record.digest) same += 1;
  else failures.push(`${key} is another record in the history than in the export`);
}
/** The last number of each instance that is in the history. */
const lastSeqs = new Map<string, number>();
for (const { instance, seq } of stated) lastSeqs.set(instance, Math.max(seq, lastSeqs.get(instance) ?? 0));
let [spans, spanTokens, historyTokens] = [0, 0, 0];
for (const { instance, committed, tokens } of ledgers) {
  const missing = committed.filter((seq) => !inHistory.has(`${instance} ${seq}`));
  lacking += missing.length;
  // Only what came last before a kill may be missing: nothing after it is there.
  if (missing.some((seq) => seq < (lastSeqs.get(instance) ?? 0)))
    failures.push(
      `${instance} ${missing.join()} are in the ledger, and missing in the middle of the history`,
    );
  if (missing.length > 0) continue;
  spans += 1;
  spanTokens += tokens;
  for (const seq of committed) {
    const record = inHistory.get(`${instance} ${seq}`);
    historyTokens += (record?.prompt_tokens ?? 0) + (record?.completion_tokens ?? 0);
  }
}
if (spanTokens !== historyTokens)
  failures.push(`the ledger sums ${spanTokens} tokens, the history ${historyTokens}`);
const newest = Math.max(...stated.map(({ ts }) => Date.parse(ts)));
for (const { startMs, killedMs } of ends) {
  if (killedMs === null) continue;
  const own = stated.filter(({ ts }) => Date.parse(ts) >= startMs && Date.parse(ts) <= killedMs);
  const lastMs = Math.max(...own.map(({ ts }) => Date.parse(ts)));
  if (killedMs - lastMs > MAY_LACK_MS + SLACK_MS)
    failures.push(`${killedMs - lastMs} ms before a kill are missing in the history`);
}

printFigures('A history that is killed again and again', [
  ['minutes', values.minutes],
  ['runs, of which killed', `${counts.runs}, ${counts.kills}`],
  ['requests answered, streams left', `${counts.answered}, ${counts.left}`],
  ['records in the history', stated.length],
  ['records exported', records.size],
  ['in both, with the same digest', `${same} of ${compared}`],
  ['in the ledger, not in the history', `${lacking}, each the last before a kill`],
  ['ledger spans that the history has whole', `${spans} of ${ledgers.length}`],
  ['their tokens: ledger, history', `${spanTokens}, ${historyTokens}`],
  ['newest record', new Date(newest).toISOString()],
]);
printFailures(failures);
process.exitCode = failures.length === 0 ? 0 : 1;

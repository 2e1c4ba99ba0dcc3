import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { answerJson, COMPLETION } from '#testkit/fake-replica.ts';
import { runMain, spawnMain, startReplica, TOKEN, writeConfig } from '#testkit/processes/main-process.ts';

/** How many requests are answered before each end of the gateway, and how it ends. */
const RUNS = [
  [40, 'SIGTERM'],
  [400, 'SIGKILL'],
  [1, 'SIGKILL'],
  [700, 'SIGKILL'],
  [150, 'SIGTERM'],
] as const;
const CLIENTS = 8;

/** A record of a file, or of an answer of the admin API. */
type Known = Pick<RequestRecord, 'request_id' | 'tenant' | 'instance' | 'seq' | 'ts' | 'e2e_ms'>;

interface Run {
  readonly url: string;
  readonly adminUrl: string;
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

async function start(config: string): Promise<Run> {
  const { child, stdout, closed } = spawnMain([], { env: { SVC_CONFIG: config, SVC_ADMIN_TOKEN: TOKEN } });
  const lines = createInterface({ input: stdout });
  const serving = Promise.withResolvers<Record<string, string>>();
  lines.on('line', (line) => line.includes('"msg":"serving"') && serving.resolve(JSON.parse(line)));
  const { listen, adminListen } = await serving.promise;
  return {
    url: `http://${listen}`,
    adminUrl: `http://${adminListen}`,
    async end(signal) {
      child.kill(signal);
      await closed;
    },
  };
}

/** Sends requests until so many are answered; then ends the gateway, and resolves when nobody sends any more. */
async function load(run: Run, [answers, signal]: (typeof RUNS)[number]): Promise<void> {
  let answered = 0;
  let isEnding = false;
  const enough = Promise.withResolvers<void>();
  const send = async (client: number) => {
    while (!isEnding) {
      const headers = { 'X-Tenant': `t${client % 3}` };
      const sent = fetch(`${run.url}/v1/chat/completions`, {
        method: 'POST',
        headers,
        body: '{"model":"m","messages":[]}',
      }).then(async (response) => [response.status, (await response.text()).length > 0] as const);
      const answer = await sent.catch(() => null);
      // Only what the end of the gateway has cut is not answered.
      if (answer === null || answer[0] === 503) expect(isEnding).toBe(true);
      else expect(answer).toEqual([200, true]);
      answered += 1;
      if (answered === answers) enough.resolve();
    }
  };
  const clients = Array.from({ length: CLIENTS }, (_, client) => send(client));
  await enough.promise;
  isEnding = true;
  await run.end(signal);
  await Promise.all(clients);
}

async function ask<T>({ adminUrl }: Run, path: string): Promise<T> {
  const response = await fetch(adminUrl + path, { headers: { Authorization: `Bearer ${TOKEN}` } });
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

async function readHistory(run: Run): Promise<readonly Known[]> {
  const found: Known[] = [];
  let path: string | null = '/admin/records?since=1h&limit=200';
  while (path !== null) {
    const page: { records: Known[]; history: { next: number | null } } = await ask(run, path);
    found.push(...page.records);
    const { next } = page.history;
    path = next === null ? null : `/admin/records?since=1h&limit=200&before=${next}`;
  }
  return found;
}

/** The request ids of the records that a gateway has written to files, with when they ended. */
async function readExported(stateDir: string): Promise<ReadonlyMap<string, number>> {
  const lines = (await readFile(join(stateDir, 'records.jsonl'), 'utf8')).split('\n');
  const ended = new Map<string, number>();
  for (const line of lines) {
    for (const { name, attributes, endTimeUnixNano } of spansOf(line)) {
      if (name === 'gateway.ledger') continue;
      const id = attributes.find(({ key }) => key === 'gateway.request_id')?.value.stringValue ?? '';
      ended.set(id, Number(BigInt(endTimeUnixNano) / 1_000_000n));
    }
  }
  return ended;
}

interface Span {
  readonly name: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

function spansOf(line: string): readonly Span[] {
  try {
    const { resourceSpans } = JSON.parse(line);
    return resourceSpans[0].scopeSpans[0].spans;
  } catch {
    return []; // a line that a kill has cut, or none
  }
}

test('the history has each record once over kills and restarts, its sums are those of the records and of the ledger, and it says what may be missing', async () => {
  const replica = await startReplica();
  replica.answer(answerJson(COMPLETION));
  const config =
    await writeConfig(`replicas: [{ name: a, url: "${replica.url}", models: [m], engine: openai }]
export: { to: file, interval: 20ms, ledger: { interval: 50ms } }
metrics: { otlp: false }
`);
  for (const run of RUNS) await load(await start(config), run);
  const last = await start(config);

  const records = await readHistory(last);
  expect(new Set(records.map(({ request_id }) => request_id)).size).toBe(records.length);
  const usage = await ask<{
    readonly total: { readonly requests: number; readonly completion_tokens: number };
    readonly rows: readonly { readonly tenant: string; readonly requests: number }[];
    readonly gaps: readonly { readonly reason: string; readonly from: string; readonly until: string }[];
  }>(last, '/admin/usage?since=1h&by=tenant');
  expect(usage.total).toMatchObject({
    requests: records.length,
    completion_tokens: records.length * COMPLETION.usage.completion_tokens,
  });
  for (const { tenant, requests } of usage.rows) {
    expect(records.filter((record) => record.tenant === tenant)).toHaveLength(requests);
  }
  // One that was killed before its history was open is in the gap of the kill before.
  expect(new Set(usage.gaps.map(({ reason }) => reason))).toEqual(new Set(['killed']));

  // What is missing ended in a gap.
  const known = new Set(records.map(({ request_id }) => request_id));
  const exported = await readExported(join(dirname(config), 'state'));
  expect(exported.size).toBeGreaterThan(1_000);
  for (const [id, endMs] of exported) {
    if (known.has(id)) continue;
    const isIn = usage.gaps.some(
      ({ from, until }) => endMs >= Date.parse(from) && endMs <= Date.parse(until),
    );
    expect(isIn, id).toBe(true);
  }

  // An instance that has ended well is the same in the ledger.
  await last.end('SIGTERM');
  const { stdout } = await runMain(['verify', '--json', join(dirname(config), 'state/records.jsonl')]);
  const { instances } = JSON.parse(stdout) as {
    readonly instances: readonly {
      readonly instance: string;
      readonly state: string;
      readonly records: number;
    }[];
  };
  const complete = instances.filter(({ state }) => state === 'complete');
  expect(complete).toHaveLength(2);
  for (const { instance, records: count } of complete) {
    expect(records.filter((record) => record.instance === instance)).toHaveLength(count);
  }
}, 120_000);

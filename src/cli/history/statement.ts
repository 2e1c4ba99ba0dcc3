import { open } from 'node:fs/promises';
import { StartError, toFileProblem, UnusableSettingError } from '#base';
import { itemsOf, memberOf, textOf } from '#base/parsed';
import { type AdminClient, RefusedError } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { findConfigPath, type Invocation, readConfigFile, UsageError } from '#cli/command';
import { createPaint, tableWidthOf, toOneLine } from '#cli/terminal';
import { toShownName } from '#otel/base';
import {
  composeStatement,
  type GatewayFacts,
  loadStatementKey,
  SameRecordsError,
  type Statement,
  type StatementKey,
  signStatement,
  toMonth,
} from '#statement';
import { printJson } from '../print-json.ts';
import { toLackTexts, toStatementCsv, toStatementTable } from '../tables/statement-text.ts';
import { openHistories } from './history-gateways.ts';
import { LocalTime } from './local-time.ts';

/**
 * `gateway statement`: states what a tenant used in a month, from the history of all gateways that are named. Throws a
 * UsageError or what a call throws: without one of the gateways there is no statement.
 */
export async function statement({ args, env, stdout, stderr }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.statement.options);
  const { month: name = '', output, unsigned = false } = values;
  // By the name that records have.
  const tenant = toShownName(values.tenant ?? '');
  if (values.csv && values.json) throw new UsageError("options '--csv' and '--json' exclude each other");
  if (tenant === '') throw new UsageError("option '--tenant' is missing");
  const timeZone = values['time-zone'] ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const month = readMonth(name, timeZone);
  const isWhole = output !== undefined || values.json === true;
  const key = isWhole && !unsigned ? await findKey(values, env) : null;
  const clients = await openHistories(values, { env, stderr });
  if (key !== null) for (const client of clients) await refuseOtherKey(client, key);
  const madeAt = new Date().toISOString();
  if (madeAt <= month.since) throw new UsageError("option '--month' needs a month that has begun");
  const facts: GatewayFacts[] = [];
  for (const client of clients) facts.push(await readFacts(client, { tenant, ...month }));
  const body = compose(() => composeStatement(facts, { tenant, month: name, timeZone, madeAt }, month));
  const whole = key === null ? body : signStatement(body, key);
  const time = new LocalTime(timeZone);
  for (const text of toLackTexts(whole, time)) stderr.write(`gateway: ${toOneLine(text)}\n`);
  if (facts.every(({ records, unnumbered }) => records.length + unnumbered === 0))
    stderr.write('gateway: no request of this tenant and month is kept: check the name\n');
  if (output !== undefined) await writeStatement(output, whole);
  if (values.json) printJson(stdout, whole);
  else if (values.csv) stdout.write(toStatementCsv(whole));
  else
    stdout.write(
      toStatementTable(whole, time, { paint: createPaint(stdout, env), width: tableWidthOf(stdout) }),
    );
  return 0;
}

function readMonth(month: string, timeZone: string) {
  try {
    const read = toMonth(month, timeZone);
    if (read !== null) return read;
  } catch {
    throw new UsageError("option '--time-zone' needs a time zone such as Europe/Berlin");
  }
  throw new UsageError("option '--month' needs a month such as 2026-11");
}

interface KeyOptions {
  readonly 'sign-key'?: string;
  readonly config?: string;
}

/** Throws a UsageError or an UnusableSettingError. */
async function findKey(options: KeyOptions, env: Invocation['env']): Promise<StatementKey> {
  const found = await findKeyFile(options, env);
  if (found === null) {
    throw new UsageError(
      "no key to sign with: give --sign-key FILE, which 'gateway key create --statement' makes, or --unsigned for a draft",
    );
  }
  const key = await loadStatementKey(found.path, found.source);
  if (key.sign === null) throw new UnusableSettingError(`${found.source} is a public key, which cannot sign`);
  return key;
}

async function findKeyFile({ 'sign-key': path, config }: KeyOptions, env: Invocation['env']) {
  if (path !== undefined) return { path, source: `--sign-key ${toOneLine(path)}` };
  const named = env.SVC_STATEMENT_KEY_FILE ?? '';
  if (named !== '') return { path: named, source: 'the file that SVC_STATEMENT_KEY_FILE names' };
  const configPath = findConfigPath(config, env);
  if (configPath === null) return null;
  const { statementKey } = (await readConfigFile(configPath, env)).config;
  return statementKey === null ? null : { path: statementKey, source: `statement_key: ${statementKey}` };
}

/** A statement that is signed with another key than customers are told is of no use to them. */
async function refuseOtherKey(client: AdminClient, { publicKey }: StatementKey): Promise<void> {
  const shown = await readShownKey(client);
  if (shown === null || shown === publicKey) return;
  throw new StartError(
    `the key is another one than ${client.baseUrl} shows at /admin/statement-key: ${publicKey}, not ${toOneLine(shown)}`,
  );
}

function compose(work: () => ReturnType<typeof composeStatement>) {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof SameRecordsError)) throw error;
    throw new StartError(
      'two of the gateways have the same records: does one have a copy of the history of the other?',
      error,
    );
  }
}

async function writeStatement(path: string, statement: Statement): Promise<void> {
  try {
    await using file = await open(path, 'w');
    await file.writeFile(`${JSON.stringify(statement, null, 1)}\n`);
  } catch (error) {
    throw new UnusableSettingError(`cannot write ${toOneLine(path)}: ${toFileProblem(error)}`, error);
  }
}

/** Whose records, and of which time: RFC 3339 in UTC. */
interface StatementSpan {
  readonly tenant: string;
  readonly since: string;
  readonly until: string;
}

/** Reads everything that a gateway knows for a statement. Throws what a call throws. */
async function readFacts(
  client: AdminClient,
  { tenant, since, until }: StatementSpan,
): Promise<GatewayFacts> {
  const pages: unknown[] = [];
  for (let before: number | null = null; ; ) {
    const params = new URLSearchParams({ tenant, since, until, time_zone: 'UTC' });
    if (before !== null) params.set('before', String(before));
    const page = await client.call('GET', `/admin/statement-records?${params}`);
    pages.push(page);
    const next = memberOf(page, 'next');
    if (typeof next !== 'number') break;
    before = next;
  }
  const [first] = pages;
  const all = (member: string) => pages.flatMap((page) => itemsOf(page, member));
  const sum = (member: string) => pages.reduce<number>((total, page) => total + numberOf(page, member), 0);
  // What is kept may become less while pages are read.
  const latest = (of: (page: unknown) => string) => pages.map(of).toSorted().at(-1) ?? '';
  return {
    name: textOf(first, 'gateway'),
    instanceId: textOf(first, 'instance_id'),
    recordsSince: latest((page) => textOf(memberOf(page, 'kept'), 'records_since')),
    lossesSince: latest((page) => textOf(page, 'losses_since')),
    endedUntil: textOf(first, 'ended_until'),
    records: all('records').map(toRecord),
    unnumbered: sum('unnumbered'),
    losses: itemsOf(first, 'losses').map(toLoss),
    gaps: itemsOf(first, 'gaps').map(toGap),
    damagedBlocks: sum('damaged_blocks'),
  };
}

/** The public key that a gateway shows; null: it has none. Throws what a call throws. */
async function readShownKey(client: AdminClient): Promise<string | null> {
  try {
    return textOf(await client.call('GET', '/admin/statement-key'), 'public_key');
  } catch (error) {
    if (error instanceof RefusedError && error.code === 'no_statement_key') return null;
    throw error;
  }
}

function toRecord(record: unknown): GatewayFacts['records'][number] {
  const [model, cost] = [memberOf(record, 'model'), memberOf(record, 'cost')];
  return {
    instance: textOf(record, 'instance'),
    seq: numberOf(record, 'seq'),
    ts: textOf(record, 'ts'),
    model: typeof model === 'string' ? model : null,
    promptTokens: numberOf(record, 'prompt_tokens'),
    completionTokens: numberOf(record, 'completion_tokens'),
    cachedTokens: numberOf(record, 'cached_tokens'),
    reasoningTokens: numberOf(record, 'reasoning_tokens'),
    gpuSeconds: numberOf(record, 'gpu_seconds'),
    cost: typeof cost === 'number' ? { amount: cost, currency: textOf(record, 'currency') } : null,
    digest: textOf(record, 'digest'),
  };
}

function toLoss(loss: unknown): GatewayFacts['losses'][number] {
  return {
    instance: textOf(loss, 'instance'),
    first: numberOf(loss, 'first'),
    last: numberOf(loss, 'last'),
    why: textOf(loss, 'why') as GatewayFacts['losses'][number]['why'],
    isKnown: memberOf(loss, 'known') === true,
    since: textOf(loss, 'from'),
    until: textOf(loss, 'until'),
  };
}

function toGap(gap: unknown): GatewayFacts['gaps'][number] {
  const records = memberOf(gap, 'records');
  return {
    since: textOf(gap, 'from'),
    until: textOf(gap, 'until'),
    records: typeof records === 'number' ? records : null,
    reason: textOf(gap, 'reason'),
  };
}

function numberOf(value: unknown, name: string): number {
  const number = memberOf(value, name);
  return typeof number === 'number' ? number : 0;
}

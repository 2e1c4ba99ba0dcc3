import { setTimeout as sleep } from 'node:timers/promises';
import { itemsOf, memberOf } from '#base/parsed';
import { type AdminClient, openGateways, RefusedError, UnreachableError } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, type TextSink, UsageError } from '#cli/command';
import { createPaint, tableWidthOf } from '#cli/terminal';
import { parseDuration } from '#config/values';
import {
  type Answered,
  type HistoryOptions,
  openHistories,
  reportLacks,
  toSpanQuery,
} from '../history/history-gateways.ts';
import type { LocalTime } from '../history/local-time.ts';
import { createRecordTable } from '../tables/record-table.ts';

const DEFAULT_LIMIT = '20';
/** What a gateway keeps in memory. */
const MAX_LIMIT = 500;
/** What a command reads of the history. */
const MAX_HISTORIC = 100_000;

/**
 * `gateway records`: prints the latest records that match the filters, oldest first, as lines or JSON lines. With
 * `--follow` it prints new ones until the first signal. Throws a UsageError or what a call throws.
 */
export async function records(invocation: Invocation): Promise<number> {
  const { args, env, stdout } = invocation;
  const { values } = parseOptions(args, COMMANDS.records.options);
  const intervalMs = parseDuration(values.interval ?? '1s');
  if (!intervalMs) throw new UsageError("option '--interval' needs a duration such as 500ms or 2s");
  if (values.interval !== undefined && !values.follow)
    throw new UsageError("option '--interval' needs '--follow'");
  const search = { filters: toFilters(values), limit: toLimit(values.limit, isOfHistory(values)) };
  if (isOfHistory(values)) return await historicRecords(invocation, values, search);
  const [client, another] = await openGateways(values, env);
  if (client === undefined || another !== undefined)
    throw new UsageError("several '--admin' need '--since', '--request' or '--trace'");
  const time = values['time-zone'] === undefined ? undefined : toSpanQuery(values).time;
  const write = createWriter(invocation, values, time);
  const first = await client.call('GET', toPath(search, 0));
  write(first);
  if (values.follow) await follow(client, invocation, { first, intervalMs, filters: search.filters, write });
  else if (!values.json && itemsOf(first, 'records').length === 0) stdout.write('no records\n');
  return 0;
}

interface Historic extends HistoryOptions {
  readonly request?: string;
  readonly trace?: string;
  readonly follow?: boolean;
  readonly json?: boolean;
  readonly wide?: boolean;
}

function isOfHistory({ request, trace, since, until }: Historic): boolean {
  return [request, trace, since, until].some((value) => value !== undefined);
}

/** Prints records of the history of all gateways that are named, and what is missing on standard error. */
async function historicRecords(
  invocation: Invocation,
  values: Historic,
  { filters, limit }: Search,
): Promise<number> {
  const { stdout, stderr } = invocation;
  const { request, trace } = values;
  if (values.follow) throw new UsageError("option '--follow' is for new records: leave out the others");
  const hasSpan = values.since !== undefined || values.until !== undefined;
  if ([request, trace].filter((id) => id !== undefined).length + Number(hasSpan) > 1) {
    throw new UsageError("give one of '--request', '--trace' and '--since'");
  }
  const { query, time } = toSpanQuery(values);
  const clients = await openHistories(values, invocation);
  const id = request ?? trace;
  const found =
    id === undefined
      ? await listRecords(clients, { ...query, ...filters }, limit)
      : await findRecords(clients, id);
  reportLacks(stderr, found.answers, time);
  if (found.hasMore) stderr.write('gateway: more records match: give a larger --limit, or a shorter span\n');
  const write = createWriter(invocation, values, time);
  write({ records: found.records });
  if (!values.json && found.records.length === 0) stdout.write(`no records in this span (${time.zone})\n`);
  return 0;
}

interface Search {
  readonly filters: Readonly<Record<string, string>>;
  readonly limit: number;
}

function toFilters(values: {
  readonly failed?: boolean;
  readonly replica?: string;
  readonly model?: string;
  readonly tenant?: string;
  readonly client?: string;
  readonly status?: string;
}): Search['filters'] {
  const { failed, replica, model, tenant, client, status } = values;
  if (status !== undefined && !/^[1-5](?:\d\d|xx)$/.test(status)) {
    throw new UsageError("option '--status' needs a status such as 429, or a class such as 5xx");
  }
  const filters = Object.entries({
    replica,
    model,
    tenant,
    client,
    status,
    failed: failed ? 'true' : undefined,
  });
  return Object.fromEntries(filters.filter((filter): filter is [string, string] => filter[1] !== undefined));
}

function toLimit(text = DEFAULT_LIMIT, isHistoric: boolean): number {
  const most = isHistoric ? MAX_HISTORIC : MAX_LIMIT;
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= most) return limit;
  throw new UsageError(`option '--limit' needs a whole number from 1 to ${most}`);
}

function toPath({ filters, limit }: Search, after: number): string {
  return `/admin/records?${new URLSearchParams({ ...filters, limit: String(limit), after: String(after) })}`;
}

/** Returns a function that prints the records of an answer, oldest first, below one line of heads. */
function createWriter(
  { env, stdout }: Invocation,
  { json, wide }: Pick<Historic, 'json' | 'wide'>,
  time?: LocalTime,
): (answer: unknown) => void {
  const toLines = createRecordTable(createPaint(stdout, env), time);
  const toJsonLines = (found: readonly unknown[]) =>
    found.map((record) => `${JSON.stringify(record)}\n`).join('');
  return (answer) => {
    const found = itemsOf(answer, 'records').toReversed();
    // The terminal may have another size by now.
    stdout.write(json ? toJsonLines(found) : toLines(found, wide ? null : tableWidthOf(stdout)));
  };
}

interface Following {
  readonly first: unknown;
  readonly intervalMs: number;
  readonly filters: Search['filters'];
  readonly write: (answer: unknown) => void;
}

/** Polls for new records. While the gateway does not answer it tries again: it may be restarting. */
async function follow(
  client: AdminClient,
  { stderr, signals: { shutdown: signal } }: Invocation,
  { first, intervalMs, filters, write }: Following,
): Promise<void> {
  let last = first;
  let isAnswering = true;
  for (;;) {
    await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    try {
      const answer = await pollAfter(client, last, { filters, limit: MAX_LIMIT, signal });
      if (!isAnswering) stderr.write('gateway: the gateway answers again\n');
      isAnswering = true;
      write(answer);
      reportGap(stderr, last, answer, filters);
      last = answer;
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error;
      if (signal.aborted) return;
      if (isAnswering) stderr.write(`gateway: ${error.message}: trying again\n`);
      isAnswering = false;
    }
  }
}

/** Says how many records came too quickly to be shown. With filters nobody can know. */
function reportGap(stderr: TextSink, last: unknown, answer: unknown, filters: Search['filters']): void {
  if (Object.keys(filters).length > 0 || !isSameRun(last, answer)) return;
  const newCount = Number(memberOf(answer, 'last_record')) - Number(memberOf(last, 'last_record'));
  const missing = newCount - itemsOf(answer, 'records').length;
  if (missing > 0) stderr.write(`gateway: ${missing} records came too quickly to be shown\n`);
}

/** Whether two answers come from the same run of the gateway. Another run numbers its records anew. */
function isSameRun(a: unknown, b: unknown): boolean {
  return memberOf(a, 'started_at') === memberOf(b, 'started_at');
}

/** Returns the answer with the records after the last answer. A gateway that has restarted numbers them anew. */
async function pollAfter(
  client: AdminClient,
  last: unknown,
  { signal, ...search }: Search & { readonly signal: AbortSignal },
): Promise<unknown> {
  const answer = await client.call('GET', toPath(search, Number(memberOf(last, 'last_record'))), signal);
  return isSameRun(last, answer) ? answer : await client.call('GET', toPath(search, 0), signal);
}

/** Records of the history of gateways. */
interface FoundRecords {
  /** The newest first. */
  readonly records: readonly unknown[];
  readonly answers: readonly Answered[];
  /** Whether more records match. */
  readonly hasMore: boolean;
}

/** A page of the history has so many records at most. */
const PAGE = 1_000;

/** Finds the records with an id. Throws what the last gateway says if none has it, or what a call throws. */
async function findRecords(clients: readonly AdminClient[], id: string): Promise<FoundRecords> {
  // In an address these would be steps of its path.
  if (/^\.{0,2}$/.test(id)) throw new UsageError("options '--request' and '--trace' need an id");
  const asked = await Promise.all(
    clients.map(async (client): Promise<Answered | RefusedError> => {
      const { baseUrl } = client;
      try {
        return { baseUrl, answer: await client.call('GET', `/admin/records/${encodeURIComponent(id)}`) };
      } catch (error) {
        if (error instanceof RefusedError && error.code === 'record_not_found') return error;
        throw error;
      }
    }),
  );
  const answers = asked.filter((each): each is Answered => !(each instanceof RefusedError));
  const refused = asked.find((each) => each instanceof RefusedError);
  if (answers.length === 0 && refused !== undefined) throw refused;
  return { records: merge(answers.map(({ answer }) => itemsOf(answer, 'records'))), answers, hasMore: false };
}

/** Lists the latest records of a span, at most `limit`. Throws what a call throws. */
async function listRecords(
  clients: readonly AdminClient[],
  query: Readonly<Record<string, string>>,
  limit: number,
): Promise<FoundRecords> {
  const lists = await Promise.all(clients.map((client) => listOf(client, query, limit)));
  const records = merge(lists.map((list) => list.records));
  return {
    records: records.slice(0, limit),
    answers: lists.map(({ answered }) => answered),
    hasMore: records.length > limit || lists.some(({ hasMore }) => hasMore),
  };
}

async function listOf(client: AdminClient, query: Readonly<Record<string, string>>, limit: number) {
  const records: unknown[] = [];
  let before: number | null = null;
  let answered: Answered | null = null;
  // Of the first page: an age such as 2h is longer ago with each page, and a clock may be set back.
  let span = {};
  do {
    const params: URLSearchParams = new URLSearchParams({
      ...query,
      ...span,
      limit: String(Math.min(PAGE, limit - records.length)),
      ...(before === null ? {} : { before: String(before) }),
    });
    const answer = await client.call('GET', `/admin/records?${params}`);
    const history = memberOf(answer, 'history');
    // The last: older records may have been removed since the first.
    answered = { baseUrl: client.baseUrl, answer: history };
    span = { since: String(memberOf(history, 'since')), until: String(memberOf(history, 'until')) };
    records.push(...itemsOf(answer, 'records'));
    const next = memberOf(history, 'next');
    before = typeof next === 'number' ? next : null;
  } while (before !== null && records.length < limit);
  return { records, answered, hasMore: before !== null };
}

/** The newest first. */
function merge(lists: readonly (readonly unknown[])[]): readonly unknown[] {
  if (lists.length === 1) return lists[0] ?? [];
  const timeOf = (record: unknown) => Date.parse(String(memberOf(record, 'ts')));
  return lists.flat().toSorted((a, b) => timeOf(b) - timeOf(a));
}

import { itemsOf, memberOf } from '#base/parsed';
import { type AdminClient, RefusedError } from '#cli/admin-client';
import { UsageError } from '#cli/command';
import type { Answered } from './history-gateways.ts';

/** Records of the history of gateways. */
export interface FoundRecords {
  /** The newest first. */
  readonly records: readonly unknown[];
  readonly answers: readonly Answered[];
  /** Whether more records match. */
  readonly hasMore: boolean;
}

/** A page of the history has so many records at most. */
const PAGE = 1_000;

/** Finds the records with an id. Throws what the last gateway says if none has it, or what a call throws. */
export async function findRecords(clients: readonly AdminClient[], id: string): Promise<FoundRecords> {
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
export async function listRecords(
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

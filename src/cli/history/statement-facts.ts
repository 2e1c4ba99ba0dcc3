import { itemsOf, memberOf, textOf } from '#base/parsed';
import { type AdminClient, RefusedError } from '#cli/admin-client';
import type { GatewayFacts } from '#statement';

/** Whose records, and of which time: RFC 3339 in UTC. */
export interface StatementSpan {
  readonly tenant: string;
  readonly since: string;
  readonly until: string;
}

/** Reads everything that a gateway knows for a statement. Throws what a call throws. */
export async function readFacts(
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
    records: all('records').map(toRecord),
    unnumbered: sum('unnumbered'),
    losses: itemsOf(first, 'losses').map(toLoss),
    gaps: itemsOf(first, 'gaps').map(toGap),
    damagedBlocks: sum('damaged_blocks'),
  };
}

/** The public key that a gateway shows; null: it has none. Throws what a call throws. */
export async function readShownKey(client: AdminClient): Promise<string | null> {
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

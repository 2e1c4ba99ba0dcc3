import { nameOfReplica } from '../addresses.ts';
import { statusOf } from '../http-reader.ts';
import { isWhole } from './check-response.ts';
import { type ClientView, type CollectedRecord, describe, isFromReplica, type Served } from './facts.ts';
import type { Ledger } from './ledger.ts';

/** What the gateways themselves say about records that did not arrive. */
export interface RecordAllowance {
  /** Gateways that lost records without a count: they were killed. */
  readonly killed: ReadonlySet<number>;
  /** Records that each gateway says are dropped, rejected, lost with a worker, or not stored. */
  readonly counted: ReadonlyMap<number, number>;
}

/** Checks that each request has left one record, equal to what client and replica have seen. Returns what is wrong. */
export function checkRecords(ledger: Ledger, allowance: RecordAllowance): string | null {
  // A record that the collector refused was made and sent like any other.
  const arrived = new Map([...ledger.refused, ...ledger.collected]);
  const byTenant = Map.groupBy(arrived.values(), ({ attributes }) => String(attributes['gateway.tenant']));
  const missing = new Map<number, ClientView[]>();
  for (const view of ledger.views) {
    const { id } = view.plan;
    const records = byTenant.get(id) ?? [];
    byTenant.delete(id);
    const served = ledger.served.filter(({ plan }) => plan.id === id);
    if (records.length > 1) return `${records.length} records of one request: ${describe(view)}`;
    const [record] = records;
    if (record !== undefined) {
      const problem = checkRecord(record, view, served);
      if (problem !== null) return `the record of ${describe(view)}: ${problem}`;
    } else if (served.length > 0 || view.response?.fields.has('x-request-id') === true) {
      // Without the field the gateway had not read the whole head: there was no request yet.
      missing.set(view.gateway, [...(missing.get(view.gateway) ?? []), view]);
    }
  }
  if (byTenant.size > 0) return `records of requests that nobody sent: ${[...byTenant.keys()].join(', ')}`;
  for (const [gateway, views] of missing) {
    const counted = allowance.counted.get(gateway) ?? 0;
    if (allowance.killed.has(gateway) || views.length <= counted) continue;
    return `gateway ${gateway} has no record of ${views.length} requests and says so of ${counted}: ${views.map(describe).join('; ')}`;
  }
  return null;
}

function checkRecord(
  { attributes, traceId }: CollectedRecord,
  view: ClientView,
  served: readonly Served[],
): string | null {
  const { plan, response } = view;
  const at = (name: string) => attributes[`gateway.${name}`];
  const last = served.at(-1);
  const expected: [string, unknown][] = [
    ['endpoint', plan.path],
    ['model', 'm'],
    ['prompt_chars', plan.promptChars],
  ];
  if (last !== undefined) {
    expected.push(['request_id', last.requestId]);
    if (traceId !== last.traceparent.split('-')[1])
      return `the trace ${traceId} instead of ${last.traceparent}`;
  }
  if (response !== null) expected.push(['status', statusOf(response)]);
  if (response !== null && isFromReplica(response) && last !== undefined) {
    const { answer, replica } = last;
    expected.push(['replica', nameOfReplica(replica)], ['stream', answer.kind === 'stream']);
    if (answer.status === 200 && isWhole(view, last)) {
      expected.push(['prompt_tokens', answer.promptTokens]);
      // Embeddings have no completion, whatever an engine says of it.
      if (plan.path !== '/v1/embeddings') expected.push(['completion_tokens', answer.completionTokens]);
    }
  }
  for (const [name, value] of expected) {
    // A request that was refused before its body was read has only a part of the fields.
    if (at(name) === undefined && last === undefined) continue;
    if (at(name) !== value) return `${name} is ${at(name)} instead of ${String(value)}`;
  }
  return null;
}

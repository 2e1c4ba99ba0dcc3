import { nameOfReplica } from '../addresses.ts';
import { statusOf } from '../http-reader.ts';
import { isWhole } from './check-response.ts';
import type { Chronicle } from './chronicle.ts';
import { type ClientView, type CollectedSpan, describe, isFromReplica, type Served } from './facts.ts';
import type { Losses } from './losses.ts';

/**
 * Checks that each request has left one record, equal to what client and replica have seen. `losses`: those of each gateway.
 * Returns what is wrong.
 */
export function checkRecords(chronicle: Chronicle, losses: readonly Losses[]): string | null {
  // A record that the collector refused was made and sent like any other.
  const arrived = new Map([...chronicle.refused, ...chronicle.collected]);
  const byTenant = Map.groupBy(arrived.values(), ({ attributes }) => String(attributes['gateway.tenant']));
  const missing = losses.map((): ClientView[] => []);
  /** How many requests have no record: some of them may never have reached their gateway. */
  const withoutRecord = losses.map(() => 0);
  for (const view of chronicle.views) {
    const { id } = view.plan;
    const records = byTenant.get(id) ?? [];
    byTenant.delete(id);
    const served = chronicle.served.filter(({ plan }) => plan.id === id);
    if (records.length > 1) return `${records.length} records of one request: ${describe(view)}`;
    const [record] = records;
    if (record !== undefined) {
      const problem = checkRecord(record, view, served);
      if (problem !== null) return `the record of ${describe(view)}: ${problem}`;
      continue;
    }
    withoutRecord[view.gateway] = (withoutRecord[view.gateway] ?? 0) + 1;
    if (served.length > 0 || view.response?.fields.has('x-request-id') === true) {
      // Without the field the gateway had not read the whole head: there was no request yet.
      missing[view.gateway]?.push(view);
    }
  }
  if (byTenant.size > 0) return `records of requests that nobody sent: ${[...byTenant.keys()].join(', ')}`;
  for (const [gateway, { counted, lost, wasKilled }] of losses.entries()) {
    const views = missing[gateway] ?? [];
    if (!wasKilled && views.length > counted) {
      return `gateway ${gateway} has no record of ${views.length} requests and says so of ${counted}: ${views.map(describe).join('; ')}`;
    }
    if (lost > (withoutRecord[gateway] ?? 0))
      return `gateway ${gateway} says that ${lost} records are lost, but only ${withoutRecord[gateway]} requests have none`;
  }
  return null;
}

function checkRecord(
  { attributes, traceId }: CollectedSpan,
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

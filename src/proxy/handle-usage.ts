import { toShownName } from '#otel/base';
import type { ApiClient } from '#proxy/entry';
import { failExchange } from './defect.ts';
import type { Exchange } from './exchange.ts';
import type { ProxyCollaborators, ProxySettings } from './proxy-context.ts';
import { tenantOf } from './record/recorded-fields.ts';

/** Answers a client with its own usage. Leaves no record. */
export async function answerUsage(
  exchange: Exchange,
  client: ApiClient | null,
  { recordedFields }: Pick<ProxySettings, 'recordedFields'>,
  { tellUsage, log }: Pick<ProxyCollaborators, 'tellUsage' | 'log'>,
): Promise<void> {
  exchange.http.discardBody();
  if (client === null) {
    exchange.fail('not_found');
    return;
  }
  const { target, fields } = exchange.head;
  const mark = target.indexOf('?');
  try {
    // By the names that its records have.
    const tenant = tenantOf(fields, client, recordedFields);
    const names = { name: client.name && toShownName(client.name), tenant };
    const answer = await tellUsage(names, mark === -1 ? '' : target.slice(mark + 1));
    const retry = answer.status === 503 ? 'Retry-After: 1\r\n' : '';
    const fieldLines = `X-Request-Id: ${exchange.requestId}\r\n${retry}`;
    exchange.http.answer(answer.status, 'application/json', answer.body, fieldLines);
  } catch (error) {
    failExchange(exchange, error, log);
  }
}

import type { ReplicaPool } from '../replicas/data/pool.ts';
import { forward } from './attempt/forward.ts';
import { UnrecordedAttempts } from './attempt/unrecorded-attempts.ts';
import { failExchange } from './defect.ts';
import type { Exchange } from './exchange.ts';
import type { ProxyCollaborators, ProxySettings } from './proxy-context.ts';

/** Answers a request for the list of models with that of the next replica in turn. Leaves no record. */
export async function handleModels(
  exchange: Exchange,
  settings: ProxySettings,
  collaborators: ProxyCollaborators,
): Promise<void> {
  exchange.http.discardBody();
  try {
    await forward(exchange, new UnrecordedAttempts(exchange, null, collaborators), settings);
  } catch (error) {
    failExchange(exchange, error, collaborators.log);
  }
}

/** Answers with the models among these that some replica serves. A replica's own list could name others. */
export function answerModels(exchange: Exchange, models: readonly string[], pool: ReplicaPool): void {
  exchange.http.discardBody();
  const data = models
    .filter((model) => pool.servesModel(model))
    .map((id) => ({ id, object: 'model', created: 0, owned_by: 'gateway' }));
  const fieldLines = `X-Request-Id: ${exchange.requestId}\r\n`;
  exchange.http.answer(200, 'application/json', JSON.stringify({ object: 'list', data }), fieldLines);
}

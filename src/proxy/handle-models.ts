import type { ApiClient } from '#proxy/entry';
import type { ReplicaPool } from '#replicas';
import { forward } from './attempt/forward.ts';
import { NO_SUBJECT, UnrecordedAttempts } from './attempt/unrecorded-attempts.ts';
import { failExchange } from './defect.ts';
import type { Exchange } from './exchange.ts';
import type { ProxyCollaborators, ProxySettings } from './proxy-context.ts';
import { type ModelAliases, resolveModel } from './request/model-aliases.ts';

/** Answers a request for the list of models with that of the next replica in turn. Leaves no record. */
export async function handleModels(
  exchange: Exchange,
  settings: ProxySettings,
  collaborators: ProxyCollaborators,
): Promise<void> {
  exchange.http.discardBody();
  try {
    const attempts = new UnrecordedAttempts(exchange, { body: null, ...NO_SUBJECT }, settings, collaborators);
    await forward(exchange, attempts, settings);
  } catch (error) {
    failExchange(exchange, error, collaborators.log);
  }
}

/** Answers with the models that are served and that the client may use. A replica's own list could name others. */
export function answerModels(
  exchange: Exchange,
  client: ApiClient | null,
  pool: ReplicaPool,
  aliases: ModelAliases,
): void {
  const data = modelsOf(client, pool, aliases).map(toModel);
  answer(exchange, { object: 'list', data });
}

/** Answers with one of these models. `id`: as it is written in the path. */
export function answerModel(
  exchange: Exchange,
  id: string,
  client: ApiClient | null,
  pool: ReplicaPool,
  aliases: ModelAliases,
): void {
  const model = decode(id);
  exchange.modelName = model;
  if (model !== null && modelsOf(client, pool, aliases).includes(model)) answer(exchange, toModel(model));
  else exchange.fail('model_not_found');
}

/** The names that the client may write: of models, and aliases of models that are served. */
function modelsOf(client: ApiClient | null, pool: ReplicaPool, aliases: ModelAliases): readonly string[] {
  const isServed = (name: string) => pool.servesModel(resolveModel(name, aliases));
  if (client?.models) return client.models.filter(isServed);
  if (aliases === null) return pool.models;
  return [...new Set([...pool.models, ...[...aliases.keys()].filter(isServed)])];
}

function toModel(id: string) {
  return { id, object: 'model', created: 0, owned_by: 'gateway' };
}

function answer(exchange: Exchange, json: object): void {
  exchange.http.discardBody();
  const fieldLines = `X-Request-Id: ${exchange.requestId}\r\n`;
  exchange.http.answer(200, 'application/json', JSON.stringify(json), fieldLines);
}

/** Null if the escapes are not valid. */
function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

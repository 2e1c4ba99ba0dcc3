import { isObject, memberOf, parseJson } from '#base/parsed';
import type { Engine, ReplicaKnowledge } from '#replicas/terms';

/** The engine by `owned_by` in /v1/models. All others are treated as `openai`; TGI must be configured. */
const ENGINE_OF_OWNER: ReadonlyMap<unknown, Engine> = new Map([
  ['vllm', 'vllm'],
  ['sglang', 'sglang'],
  ['llamacpp', 'llamacpp'],
  ['library', 'ollama'],
]);

/** What a model list shows. */
type ModelListing = Pick<ReplicaKnowledge, 'models' | 'engine'>;

/** Parses the answer to GET /v1/models; null if it is not a list of models. */
export function parseModelList(text: string): ModelListing | null {
  const list = parseJson(text);
  const data = memberOf(list, 'data');
  if (!Array.isArray(data)) return null;
  const entries = data.filter(isObject);
  // In the configuration `*` means any name. A replica that lists it must not attract the prompts meant for others.
  const models = entries.map((entry) => entry.id).filter((id) => typeof id === 'string');
  const owner = entries.map((entry) => entry.owned_by).find((owned) => typeof owned === 'string');
  return { models: models.filter((id) => id !== '*'), engine: ENGINE_OF_OWNER.get(owner) ?? 'openai' };
}

import { itemsOf, parseJson } from '#base/parsed';
import { REASON_TEXTS } from '#replicas/reachability';
import { parseModelList } from './model-list.ts';
import { type ProbeResult, type ProbeTarget, probe } from './probe.ts';

/** What a replica answered when it was asked directly, drained or not. */
export interface EngineProbe {
  /** The models that it lists; null if it lists none. */
  readonly models: readonly string[] | null;
  /** The path that answered with a completion; null if none was asked for, or none did. */
  readonly completedBy: string | null;
  /** Why it is not ready to serve, as a phrase; null if it is. */
  readonly problem: string | null;
}

interface EngineProbeSettings {
  readonly timeoutMs: number;
  /** Whether it must also answer a small request. */
  readonly hasCompletion: boolean;
}

/** The small requests, of which an engine needs to answer one, and where the result is: not every engine generates text. */
const SMALL_REQUESTS = [
  ['/v1/chat/completions', 'choices', { max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] }],
  ['/v1/completions', 'choices', { max_tokens: 1, prompt: 'Hi' }],
  ['/v1/embeddings', 'data', { input: 'Hi' }],
] as const;

/** An engine that has no such path, or serves its model otherwise, answers with one of these. */
const NOT_SERVED = new Set([400, 404, 405, 422, 501]);

const MAX_BYTES = 1024 ** 2;

/** Asks a replica for its models, and if wanted for a small completion, with its own key and TLS. Never rejects. */
export async function probeEngine(
  replica: ProbeTarget,
  { timeoutMs, hasCompletion }: EngineProbeSettings,
): Promise<EngineProbe> {
  const listed = await probe(replica, { ...toRequest('/v1/models', timeoutMs) });
  const listing = parseModelList(okTextOf(listed) ?? '');
  const models = listing?.models ?? null;
  const problem = toListProblem(replica.config.models, listed, models);
  if (problem !== null || !hasCompletion) return { models, completedBy: null, problem };
  const configured = replica.config.models === 'auto' ? [] : replica.config.models;
  const model = configured.find((name) => name !== '*') ?? models?.[0] ?? '';
  return { models, ...(await complete(replica, model, timeoutMs)) };
}

function toListProblem(
  configured: 'auto' | readonly string[],
  result: ProbeResult,
  models: readonly string[] | null,
): string | null {
  if (result.kind === 'failure') return REASON_TEXTS[result.reason];
  const wanted = configured === 'auto' ? [] : configured.filter((name) => name !== '*');
  // Some engines have no list of models: then the configuration must name them.
  if (models === null && wanted.length > 0 && NOT_SERVED.has(result.status)) return null;
  if (models === null) return `/v1/models has status ${result.status} and no list of models`;
  if (models.length === 0) return 'it lists no model yet';
  const missing = wanted.filter((name) => !models.includes(name) && !models.includes(`${name}:latest`));
  return missing.length === 0 ? null : `it does not list ${missing.join(', ')}`;
}

async function complete(
  replica: ProbeTarget,
  model: string,
  timeoutMs: number,
): Promise<Pick<EngineProbe, 'completedBy' | 'problem'>> {
  let problem = 'it answers no small request';
  for (const [path, listName, members] of SMALL_REQUESTS) {
    const body = JSON.stringify({ model, ...members });
    const result = await probe(replica, { ...toRequest(path, timeoutMs), body });
    if (hasResult(okTextOf(result) ?? '', listName)) return { completedBy: path, problem: null };
    problem = `${path}: ${toText(result)}`;
    const isNotServed = result.kind === 'answer' && NOT_SERVED.has(result.status);
    if (!isNotServed) break;
  }
  return { completedBy: null, problem };
}

function toRequest(path: string, timeoutMs: number) {
  return {
    path,
    timeoutMs,
    accept: 'application/json',
    isWanted: () => true,
    maxBytes: MAX_BYTES,
    onLongBody: 'ignore' as const,
  };
}

/** The body of a successful answer; null if it is none. */
function okTextOf(result: ProbeResult): string | null {
  return result.kind === 'answer' && result.status >= 200 && result.status < 300 ? result.text : null;
}

function toText(result: ProbeResult): string {
  if (result.kind === 'failure') return REASON_TEXTS[result.reason];
  return okTextOf(result) === null ? `status ${result.status}` : 'an answer without a result';
}

/** Whether the answer has a list of this name with something in it. */
function hasResult(text: string, listName: string): boolean {
  return itemsOf(parseJson(text), listName).length > 0;
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Dialect, stepCount } from './dialects/dialect.ts';
import { type Delivery, type PlannedFault, readBody, sendJson, sendStream, sendWhole } from './exchange.ts';
import { Refusal } from './failure.ts';
import { type JsonObject, parseJsonObject } from './json-members.ts';
import { createPace } from './pace.ts';
import { type Answer, hexDigits, planAnswer } from './plan-answer.ts';
import type { PrefixCache, Prompt } from './prefix-cache.ts';
import { readChatRequest, readCompletionRequest, readEmbeddingsRequest } from './read-request.ts';
import { type Stage, toSceneSettings } from './scenes.ts';
import {
  createRandom,
  type Fault,
  type ServedRequest,
  type SimulatedReplicaCollaborators,
  type SimulatedReplicaSettings,
  type Usage,
} from './settings.ts';

/** The lasting parts of a replica. */
export interface ReplicaParts {
  readonly settings: SimulatedReplicaSettings;
  readonly collaborators: SimulatedReplicaCollaborators;
  readonly dialect: Dialect;
  readonly cache: PrefixCache;
  readonly stage: Stage;
}

/** The outcome of a request so far; `client_gone` until it has ended otherwise. */
export interface Outcome {
  ending: ServedRequest['ending'];
  stream: boolean;
  generatedTokens: number;
  usage?: Usage;
}

/** One request on a recorded endpoint. */
export interface Exchange {
  readonly endpoint: ServedRequest['endpoint'];
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly outcome: Outcome;
}

/** Answers the request and fills in its outcome. Rejects only if the connection fails. */
export async function serveRequest(exchange: Exchange, lasting: ReplicaParts): Promise<void> {
  const { request, response, outcome } = exchange;
  const { scene } = lasting.stage;
  const parts = { ...lasting, settings: toSceneSettings(lasting.settings, scene) };
  const requestId = request.headers['x-request-id'];
  if (typeof requestId === 'string') response.setHeader('x-request-id', requestId);
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    const bytes = await readBody(request, parts.settings.maxBodyBytes);
    if (scene === 'loading') throw new Refusal({ code: 'loading' });
    const body = parseJsonObject(bytes);
    outcome.ending =
      exchange.endpoint === '/v1/embeddings'
        ? await answerEmbeddings(body, exchange, parts, gone.signal)
        : await answerGeneration(body, exchange, parts, gone.signal);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { failure } = error;
    const wire = parts.dialect.error(failure, parts.settings);
    const closing = failure.code === 'too_large' ? { connection: 'close' } : {};
    outcome.ending = 'refused';
    const delivery = { response, dialect: parts.dialect, now: parts.collaborators.now };
    await sendJson(delivery, wire.status, wire.body, { ...wire.headers, ...closing });
  }
}

async function answerGeneration(
  body: JsonObject,
  { endpoint, response, outcome }: Exchange,
  { settings, collaborators, dialect, cache, stage }: ReplicaParts,
  signal: AbortSignal,
): Promise<ServedRequest['ending']> {
  const request = endpoint === '/v1/completions' ? readCompletionRequest(body) : readChatRequest(body);
  outcome.stream = request.stream;
  const { random, now } = collaborators;
  const model = servedModel(request.model, settings.models, dialect);
  refuseTooLong(request.prompts, settings.maxModelTokens);
  const fault = drawFault(settings, request.stream, random);
  if (fault === 'status_500') throw new Refusal({ code: 'injected' });

  const hits = request.prompts.map((prompt) => cache.remember(model, prompt));
  const plan = {
    ...settings,
    id: answerId(response, random),
    createdSeconds: Math.floor(now() / 1000),
    model,
    random,
  };
  const answer = planAnswer(request, hits, plan);
  outcome.usage = answer.usage;
  const delivery: Delivery = {
    response,
    dialect,
    pace: createPace(settings, collaborators, signal, stage),
    now,
    signal,
    cachedShare: cachedShareOf(answer.usage),
    onTokens: (count) => {
      outcome.generatedTokens += count;
    },
  };
  if (request.stream) return await sendStream(answer, planFault(fault, answer, random), delivery);
  await sendWhole(answer, delivery);
  return 'complete';
}

async function answerEmbeddings(
  body: JsonObject,
  { response, outcome }: Exchange,
  { settings, collaborators, dialect, stage }: ReplicaParts,
  signal: AbortSignal,
): Promise<ServedRequest['ending']> {
  const { model: asked, inputs, base64, dimensions } = readEmbeddingsRequest(body);
  const { random, now } = collaborators;
  const model = servedModel(asked, settings.models, dialect);
  refuseTooLong(inputs, settings.maxModelTokens);
  if (drawFault(settings, false, random) !== null) throw new Refusal({ code: 'injected' });

  const promptTokens = inputs.reduce((sum, { tokens }) => sum + tokens, 0);
  outcome.usage = {
    promptTokens,
    completionTokens: 0,
    cachedTokens: 0,
    createdCacheTokens: 0,
    reasoningTokens: 0,
  };
  await createPace(settings, collaborators, signal, stage).untilFirst(0);
  const vectors = inputs.map(({ text }) => {
    const vector = embed(text, dimensions);
    return base64 ? toBase64(vector) : vector;
  });
  const id = answerId(response, random);
  const embeddings = { id, createdSeconds: Math.floor(now() / 1000), model, vectors, base64, promptTokens };
  await sendJson({ response, dialect, now }, 200, dialect.embeddings(embeddings));
  return 'complete';
}

/** The model that answers. Throws Refusal `unknown_model` if the engine checks it. */
function servedModel(asked: string, models: readonly string[], dialect: Dialect): string {
  const loaded = models[0] ?? '';
  if (dialect.servesAnyModel || asked === '') return loaded;
  if (models.includes(asked)) return asked;
  throw new Refusal({ code: 'unknown_model', model: asked });
}

function refuseTooLong(prompts: readonly Prompt[], maxModelTokens: number): void {
  const longest = prompts.reduce((most, { tokens }) => Math.max(most, tokens), 0);
  if (longest >= maxModelTokens) throw new Refusal({ code: 'too_long', promptTokens: longest });
}

/** Whether this request fails, and how. */
function drawFault(
  { errorRate, faults }: Pick<SimulatedReplicaSettings, 'errorRate' | 'faults'>,
  isStream: boolean,
  random: () => number,
): Fault | null {
  if (random() >= errorRate) return null;
  if (!isStream) return 'status_500';
  return faults[Math.floor(random() * faults.length)] ?? null;
}

function planFault(
  fault: PlannedFault['kind'] | null,
  answer: Answer,
  random: () => number,
): PlannedFault | null {
  return fault === null
    ? null
    : { kind: fault, afterSteps: 1 + Math.floor(random() * (stepCount(answer) - 1)) };
}

/** vLLM derives the id of the answer from the request id. */
function answerId(response: ServerResponse, random: () => number): string {
  const given = response.getHeader('x-request-id');
  return typeof given === 'string' ? given : hexDigits(16, random);
}

function cachedShareOf({ cachedTokens, promptTokens }: Usage): number {
  return promptTokens === 0 ? 0 : cachedTokens / promptTokens;
}

/** A unit vector that depends on the text alone, so that equal inputs have equal embeddings. */
function embed(text: string, dimensions: number): readonly number[] {
  let seed = 0;
  for (let index = 0; index < text.length; index += 1)
    seed = Math.imul(seed ^ text.charCodeAt(index), 0x01000193);
  const random = createRandom(seed);
  const vector = Array.from({ length: dimensions }, () => random() * 2 - 1);
  const length = Math.hypot(...vector);
  return vector.map((value) => Math.fround(value / length));
}

/** The vector as little-endian float32 in base64, as `encoding_format: base64` asks for. */
function toBase64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString('base64');
}

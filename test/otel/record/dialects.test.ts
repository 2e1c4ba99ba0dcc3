import { describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { FULL_NOTES, FULL_RECORD, LEAST_RECORD } from '#testkit/records/records.ts';
import { toOperationAttributes, toRequestAttributes } from '../../../otel/record/attributes.ts';
import type { GenAiNames } from '../../../otel/record/gen-ai-names.ts';

/*
 * What backends that cannot be run here do with our spans: the rules of their ingestion, as read in their sources at the
 * commits that otel/record/registry/dialects.yaml names.
 */

const OFF = { langfuse: false, openinference: false, signoz: false, datadog: false };
const HTTP = { scheme: 'http', notes: FULL_NOTES } as const;

const spanOf = (
  record: Readonly<RequestRecord>,
  on: Partial<typeof OFF> = {},
  names: GenAiNames = 'pinned',
): Record<string, unknown> => toRequestAttributes(record, HTTP, names, { ...OFF, ...on });

const USED: RequestRecord = {
  ...LEAST_RECORD,
  prompt_tokens: 120,
  cached_tokens: 64,
  cache_creation_tokens: 32,
  completion_tokens: 45,
  reasoning_tokens: 7,
  cost: 0.001,
};

const HEARD: RequestRecord = { ...USED, completion_audio_tokens: 8, prompt_audio_tokens: 5 };

/** The names of one kind of tokens in Langfuse's rule, without their prefix: it takes the first that a span has. */
const LANGFUSE_KINDS = {
  input: ['prompt_tokens', 'input_tokens', 'prompt'],
  output: ['completion_tokens', 'output_tokens', 'completion'],
  total: ['total_tokens', 'total'],
  read: ['cache_read.input_tokens', 'prompt_details.cache_read'],
  written: ['cache_creation.input_tokens', 'prompt_details.cache_write'],
  reasoned: ['reasoning.output_tokens', 'completion_details.reasoning'],
  spoken: ['completion_details.audio'],
} as const;

/**
 * The total that Langfuse shows: packages/shared/src/server/otel/OtelIngestionProcessor.ts,
 * `extractGenericGenAiUsageDetails`, where each name that it does not know is one more kind; and
 * worker/src/services/IngestionService/index.ts, which adds the kinds up where no total is given.
 */
function langfuseTokens(attributes: Readonly<Record<string, unknown>>): number {
  const own = attributes['langfuse.observation.usage_details'];
  if (typeof own === 'string') return sum(Object.values(JSON.parse(own)));
  const found = new Map(
    Object.entries(attributes).flatMap(([key, value]) => {
      const [, name] = /^(?:gen_ai\.usage|llm\.token_count)\.(?!cost$)(.+)$/.exec(key) ?? [];
      return name === undefined ? [] : [[name, Number(value)] as const];
    }),
  );
  const firstOf = (kind: keyof typeof LANGFUSE_KINDS) =>
    LANGFUSE_KINDS[kind].map((name) => found.get(name)).find((value) => value !== undefined);
  const [read = 0, written = 0, reasoned = 0, spoken = 0] = [
    firstOf('read'),
    firstOf('written'),
    firstOf('reasoned'),
    firstOf('spoken'),
  ];
  const known: ReadonlySet<string> = new Set(Object.values(LANGFUSE_KINDS).flat());
  const further = [...found].filter(([name]) => !known.has(name)).map(([, value]) => value);
  const input = Math.max((firstOf('input') ?? 0) - read - written, 0);
  const output = Math.max((firstOf('output') ?? 0) - reasoned - spoken, 0);
  return firstOf('total') ?? sum([input, output, read, written, reasoned, spoken, ...further]);
}

const sum = (numbers: readonly unknown[]) => numbers.reduce<number>((total, each) => total + Number(each), 0);

describe('Langfuse', () => {
  test.each(['pinned', 'latest'] as const)('counts each token of a text once with the %s names', (names) => {
    for (const langfuse of [false, true]) {
      for (const openinference of [false, true]) {
        expect(langfuseTokens(spanOf(USED, { langfuse, openinference }, names))).toBe(165);
      }
    }
  });

  test('counts audio once with the names in use; with the newest ones it needs its dialect for that', () => {
    expect(langfuseTokens(spanOf(HEARD))).toBe(165);
    expect(langfuseTokens(spanOf(HEARD, {}, 'latest'))).toBe(165 + 5 + 8);
    expect(langfuseTokens(spanOf(HEARD, { langfuse: true }, 'latest'))).toBe(165);
  });

  test('would count cache writes twice under the newest name, beside the older one too, so a span has neither', () => {
    const { 'gen_ai.usage.cache_creation.input_tokens': written, ...rest } = spanOf(USED);
    const newest = { 'gen_ai.usage.cache_write.input_tokens': written };
    expect(langfuseTokens({ ...rest, ...newest })).toBe(165 + 32);
    expect(langfuseTokens({ ...spanOf(USED), ...newest })).toBe(165 + 32);
    const names = Object.keys(spanOf(USED, {}, 'latest')).filter((name) => name.startsWith('gen_ai.'));
    expect(names.filter((name) => name.includes('cache_'))).toEqual(['gen_ai.usage.cache_read.input_tokens']);
    expect(spanOf(USED, {}, 'latest')['gateway.cache_creation_tokens']).toBe(32);
  });

  test('gets the time of the first token, which no convention has as a time', () => {
    const { 'langfuse.observation.completion_start_time': start } = spanOf(
      { ...LEAST_RECORD, ts: '2026-11-21T08:00:00.123Z', ttft_ms: 31.25 },
      { langfuse: true },
    );
    expect(start).toBe('2026-11-21T08:00:00.154Z');
  });

  test('finds model, user, session, prompt and cost, and the parameters of the request', () => {
    const span = spanOf({ ...USED, model: 'm' }, { langfuse: true });
    // extractModelName, extractUserId, extractSessionId, extractCostDetails; extractModelParameters takes all of
    // gen_ai.request.* but model.
    expect(span).toMatchObject({
      'gen_ai.request.model': 'm',
      'user.id': 'u-1',
      'session.id': 's-1',
      'gen_ai.usage.cost': 0.001,
      'langfuse.observation.prompt.name': 'support',
      'langfuse.observation.prompt.version': '12',
      'gen_ai.request.temperature': 1,
      'gen_ai.request.seed': 7,
    });
  });
});

describe('OpenInference', () => {
  test('has the kind of the operation, its tokens with their total, and its parameters', () => {
    expect(spanOf({ ...USED, model: 'm', max_tokens: 256 }, { openinference: true })).toMatchObject({
      'openinference.span.kind': 'LLM',
      'llm.model_name': 'm',
      'llm.token_count.prompt': 120,
      'llm.token_count.completion': 45,
      'llm.token_count.total': 165,
      'llm.invocation_parameters':
        '{"temperature":1,"top_p":0.9,"top_k":40,"frequency_penalty":0.5,"presence_penalty":-0.5,"seed":7,"n":2,"max_tokens":256}',
    });
    const kindOf = (endpoint: string) =>
      spanOf({ ...LEAST_RECORD, endpoint }, { openinference: true })['openinference.span.kind'];
    expect(['/v1/embeddings', '/v1/messages', '/tokenize', '/v1/completions'].map(kindOf)).toEqual([
      ...['EMBEDDING', 'LLM', undefined, 'LLM'],
    ]);
    const reranking = ['/rerank', '/v1/rerank', '/v2/rerank', '/reranking', '/v1/reranking'];
    expect(new Set(reranking.map(kindOf))).toEqual(new Set(['RERANKER']));
  });

  test('of a request without parameters has none', () => {
    const span = toRequestAttributes(LEAST_RECORD, { scheme: 'http' }, 'pinned', {
      ...OFF,
      openinference: true,
    });
    expect(Object.keys(span)).not.toContain('llm.invocation_parameters');
  });
});

describe('SigNoz', () => {
  /** pkg/types/aiobservabilitytypes/keys.go: what its AI views read, without the messages, which are text. */
  const READ = [
    ...['gen_ai.request.model', 'gen_ai.operation.name', 'gen_ai.agent.name', 'gen_ai.provider.name'],
    ...['gen_ai.usage.input_tokens', 'gen_ai.usage.output_tokens', 'gen_ai.usage.cache_read.input_tokens'],
    ...['gen_ai.usage.cache_creation.input_tokens', '_signoz.gen_ai.total_cost'],
  ];

  test('finds every name that its views read and that is no text', () => {
    expect(Object.keys(spanOf(FULL_RECORD, { signoz: true }))).toEqual(expect.arrayContaining(READ));
  });
});

describe('Datadog', () => {
  test('takes the span for one of a model, not for a request of the web', () => {
    // GetOTelSpanType: `span.type` first, else `web` of a SERVER span and `http` of a CLIENT span.
    expect(spanOf(LEAST_RECORD, { datadog: true })['span.type']).toBe('llm');
    expect(
      spanOf({ ...LEAST_RECORD, endpoint: '/tokenize' }, { datadog: true })['span.type'],
    ).toBeUndefined();
  });
});

describe('a dialect', () => {
  test('is on the span that has the conventions of GenAI, and on no other', () => {
    const all = { langfuse: true, openinference: true, signoz: true, datadog: true };
    const isOfDialect = (name: string) => /^(?:langfuse|llm|openinference|_signoz|span)\./.test(name);
    const of = (attributes: object) => Object.keys(attributes).filter(isOfDialect);
    expect(of(toRequestAttributes(FULL_RECORD, HTTP, null, all))).toEqual([]);
    expect(of(toOperationAttributes(FULL_RECORD, HTTP, 'pinned', all)).length).toBeGreaterThan(15);
    expect(of(toRequestAttributes(FULL_RECORD, HTTP))).toEqual([]);
  });

  test('holds no text of a request: every value is a number, a word of ours, or what the record has', () => {
    const span = spanOf(FULL_RECORD, { langfuse: true, openinference: true, signoz: true, datadog: true });
    const forbidden = /input\.value|output\.value|input_messages|output_messages|prompts|tools|stop/;
    expect(Object.keys(span).filter((name) => forbidden.test(name))).toEqual([]);
  });
});

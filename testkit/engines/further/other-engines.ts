import {
  captured,
  MESSAGE,
  NO_TOKENS,
  ofCapture,
  PAIR,
  PAIR_FACTS,
  RESPONSE,
  TEXT,
  TEXT_FACTS,
  type Told,
  USAGE,
} from './told.ts';

const SGLANG = 'sgl-project/sglang, python/sglang/srt/entrypoints/openai';
const LLAMACPP = 'ggml-org/llama.cpp, tools/server/server-common.cpp and server.cpp';
const TGI = 'huggingface/text-generation-inference, router/src/server.rs';

/** What SGLang answers. */
export const SGLANG_TOLD: readonly Told[] = [
  {
    name: 'responses',
    source: `${SGLANG}/protocol.py, ResponsesResponse: its usage is a UsageInfo, with the names of chats`,
    ...RESPONSE,
    answer: {
      json: {
        id: 'resp_1',
        object: 'response',
        created_at: 1_795_000_000,
        model: 'm',
        output: [],
        status: 'completed',
        usage: {
          prompt_tokens: 9,
          total_tokens: 12,
          completion_tokens: 3,
          prompt_tokens_details: { cached_tokens: 4 },
          reasoning_tokens: 1,
        },
        parallel_tool_calls: true,
        tool_choice: 'auto',
        tools: [],
        error: null,
      },
    },
    record: {
      prompt_tokens: 9,
      completion_tokens: 3,
      cached_tokens: 4,
      reasoning_tokens: 1,
      response_id: 'resp_1',
      finish_reasons: ['completed'],
    },
  },
  {
    name: 'rerank, /v1/rerank',
    source: `${SGLANG}/protocol.py, RerankResponse: a list, without usage`,
    path: '/v1/rerank',
    request: PAIR,
    answer: { json: [{ score: 0.4, document: 'deep', index: 1, meta_info: { prompt_tokens: 3 } }] },
    record: { ...PAIR_FACTS, ...NO_TOKENS },
  },
  {
    name: 'score',
    source: `${SGLANG}/protocol.py, ScoringResponse`,
    path: '/v1/score',
    request: { query: 'sea', items: ['wide', 'deep'] },
    answer: { json: { scores: [[0.5, 0.5]], model: 'm', usage: USAGE, object: 'scoring' } },
    record: { ...PAIR_FACTS, prompt_tokens: 9, response_model: 'm' },
  },
  {
    name: 'classify',
    source: `${SGLANG}/protocol.py, ClassifyResponse`,
    path: '/v1/classify',
    request: { input: TEXT },
    answer: {
      json: {
        id: 'classify-1',
        object: 'list',
        created: 1_795_000_000,
        model: 'm',
        data: [{ index: 0, label: 'LABEL_1', probs: [0.2, 0.8], num_classes: 2 }],
        usage: { ...USAGE, completion_tokens: 0, prompt_tokens_details: null, reasoning_tokens: 0 },
      },
    },
    record: { ...TEXT_FACTS, prompt_tokens: 9 },
  },
  {
    name: 'tokenize',
    source: `${SGLANG}/protocol.py, TokenizeResponse`,
    path: '/v1/tokenize',
    request: { prompt: TEXT },
    answer: { json: { tokens: [1, 2, 3, 4], count: 4, max_model_len: 4096 } },
    record: { ...TEXT_FACTS, ...NO_TOKENS },
  },
  {
    name: 'detokenize',
    source: `${SGLANG}/protocol.py, DetokenizeResponse`,
    path: '/v1/detokenize',
    request: { tokens: [1, 2] },
    answer: { json: { text: TEXT } },
    record: { ...NO_TOKENS, prompt_chars: undefined },
  },
];

/** What llama.cpp answers. */
export const LLAMACPP_TOLD: readonly Told[] = [
  {
    name: 'responses',
    ...RESPONSE,
    ...captured('llama/responses'),
    record: { ...ofCapture, completion_tokens: 8, cached_tokens: 0, finish_reasons: ['completed'] },
  },
  {
    name: 'responses, stream',
    ...RESPONSE,
    ...captured('llama/responses-stream'),
    record: { ...ofCapture, completion_tokens: 8, cached_tokens: 10 },
  },
  {
    name: 'messages, stream',
    ...MESSAGE,
    ...captured('llama/messages-stream'),
    record: { ...ofCapture, completion_tokens: 8, cached_tokens: 10 },
  },
  ...['/rerank', '/v1/rerank', '/reranking', '/v1/reranking'].map((path) => ({
    name: `rerank, ${path}`,
    source: `${LLAMACPP}, format_response_rerank`,
    path,
    request: PAIR,
    answer: {
      json: { model: 'm', object: 'list', usage: USAGE, results: [{ index: 1, relevance_score: 0.9 }] },
    },
    record: { ...PAIR_FACTS, prompt_tokens: 9, response_model: 'm' },
  })),
  {
    name: 'rerank, texts',
    source: `${LLAMACPP}, format_response_rerank with is_tei_format: a list, without usage`,
    path: '/rerank',
    request: { query: 'sea', texts: ['wide', 'deep'] },
    answer: { json: [{ index: 1, score: 0.9 }] },
    record: { ...PAIR_FACTS, ...NO_TOKENS },
  },
  {
    name: 'tokenize',
    source: `${LLAMACPP}, post_tokenize`,
    path: '/tokenize',
    request: { content: TEXT },
    answer: { json: { tokens: [1, 2, 3, 4] } },
    record: { ...TEXT_FACTS, ...NO_TOKENS },
  },
  {
    name: 'detokenize',
    source: `${LLAMACPP}, post_detokenize`,
    path: '/detokenize',
    request: { tokens: [1, 2] },
    answer: { json: { content: TEXT } },
    record: { ...NO_TOKENS, prompt_chars: undefined },
  },
];

/** What text-generation-inference answers. */
export const TGI_TOLD: readonly Told[] = [
  {
    name: 'tokenize',
    source: `${TGI}, tokenize`,
    path: '/tokenize',
    request: { inputs: TEXT },
    answer: { json: [{ id: 1, text: 'The', start: 0, stop: 3 }] },
    record: { ...TEXT_FACTS, ...NO_TOKENS },
  },
];

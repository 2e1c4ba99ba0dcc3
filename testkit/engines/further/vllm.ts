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
  VLLM_USAGE,
} from './told.ts';

const VLLM = 'vllm-project/vllm, vllm/entrypoints';

/** What vLLM answers. Responses and messages are of 0.32.0. */
export const VLLM_TOLD: readonly Told[] = [
  {
    name: 'responses',
    ...RESPONSE,
    ...captured('vllm/responses'),
    record: { ...ofCapture, completion_tokens: 6, reasoning_tokens: 0, finish_reasons: ['completed'] },
  },
  {
    name: 'responses, stream',
    ...RESPONSE,
    ...captured('vllm/responses-stream'),
    record: { ...ofCapture, completion_tokens: 8, finish_reasons: ['max_output_tokens'] },
  },
  {
    name: 'messages, stream',
    ...MESSAGE,
    ...captured('vllm/messages-stream'),
    record: { ...ofCapture, completion_tokens: 8 },
  },
  ...['/rerank', '/v1/rerank', '/v2/rerank'].map((path) => ({
    name: `rerank, ${path}`,
    source: `${VLLM}/pooling/scoring/protocol.py, RerankResponse`,
    path,
    request: PAIR,
    answer: {
      json: {
        id: 'rerank-1',
        model: 'm',
        usage: USAGE,
        results: [
          { index: 1, document: { text: 'deep', multi_modal: null }, relevance_score: 0.9 },
          { index: 0, document: { text: 'wide', multi_modal: null }, relevance_score: 0.1 },
        ],
      },
    },
    record: { ...PAIR_FACTS, prompt_tokens: 9, response_id: 'rerank-1', response_model: 'm' },
  })),
  {
    name: 'score',
    source: `${VLLM}/pooling/scoring/protocol.py, ScoreResponse`,
    path: '/v1/score',
    request: { text_1: 'sea', text_2: ['wide', 'deep'] },
    answer: {
      json: {
        id: 'score-1',
        object: 'list',
        created: 1_795_000_000,
        model: 'm',
        data: [{ index: 0, object: 'score', score: 0.5 }],
        usage: VLLM_USAGE,
      },
    },
    record: { ...PAIR_FACTS, prompt_tokens: 9, completion_tokens: 0 },
  },
  {
    name: 'classify',
    source: `${VLLM}/pooling/classify/protocol.py, ClassificationResponse`,
    path: '/classify',
    request: { input: TEXT },
    answer: {
      json: {
        id: 'classify-1',
        object: 'list',
        created: 1_795_000_000,
        model: 'm',
        data: [{ index: 0, label: 'LABEL_1', probs: [0.2, 0.8], num_classes: 2 }],
        usage: VLLM_USAGE,
      },
    },
    record: { ...TEXT_FACTS, prompt_tokens: 9, response_id: 'classify-1' },
  },
  {
    name: 'pooling',
    source: `${VLLM}/pooling/pooling/protocol.py, PoolingResponse`,
    path: '/pooling',
    request: { input: TEXT },
    answer: {
      json: {
        id: 'pool-1',
        object: 'list',
        created: 1_795_000_000,
        model: 'm',
        data: [{ index: 0, object: 'pooling', data: [[0.5, -0.25]] }],
        usage: VLLM_USAGE,
      },
    },
    record: { ...TEXT_FACTS, prompt_tokens: 9, response_id: 'pool-1' },
  },
  {
    name: 'tokenize',
    source: `${VLLM}/serve/tokenize/protocol.py, TokenizeResponse`,
    path: '/tokenize',
    request: { prompt: TEXT },
    answer: { json: { count: 4, max_model_len: 4096, tokens: [1, 2, 3, 4], token_strs: null } },
    record: { ...TEXT_FACTS, ...NO_TOKENS, prefix_hashes: undefined },
  },
  {
    name: 'detokenize',
    source: `${VLLM}/serve/tokenize/protocol.py, DetokenizeResponse`,
    path: '/detokenize',
    request: { tokens: [1, 2] },
    answer: { json: { prompt: TEXT } },
    record: { ...NO_TOKENS, prompt_chars: undefined },
  },
];

/** What the pictures show: models, engines, tenants and prices. */

export const LLAMA = 'meta-llama/Llama-3.3-70B-Instruct-FP8';
const QWEN = 'Qwen/Qwen3-32B';
export const EMBED = 'BAAI/bge-m3';

/** The replica that is drained before the pictures are taken. */
export const DRAINED = 'vllm-llama-70b-1';

export const GPUS = {
  [LLAMA]: { gpu_model: 'H100', gpu_count: 4 },
  [QWEN]: { gpu_model: 'H100', gpu_count: 2 },
  [EMBED]: { gpu_model: 'L4', gpu_count: 1 },
} as const;

/** Of an hour of one accelerator, in EUR. */
export const PRICES = { H100: 2.49, L4: 0.71 } as const;

/** The engines that answer. Times are in milliseconds. */
export const ENGINES = [
  { name: 'vllm-llama-70b-0', model: LLAMA, ttftMs: 180, gapMs: 40 },
  { name: DRAINED, model: LLAMA, ttftMs: 180, gapMs: 40 },
  { name: 'vllm-llama-70b-2', model: LLAMA, ttftMs: 200, gapMs: 42 },
  { name: 'vllm-qwen-32b-0', model: QWEN, ttftMs: 130, gapMs: 25 },
  { name: 'vllm-qwen-32b-1', model: QWEN, ttftMs: 130, gapMs: 25, errorRate: 0.12 },
  { name: 'bge-m3-0', model: EMBED, ttftMs: 50, gapMs: 0 },
  { name: 'bge-m3-1', model: EMBED, ttftMs: 50, gapMs: 0 },
] as const;

/** Of ten requests, so many are for each model; one in a hundred is for a model that nobody serves. */
export const MODELS = [LLAMA, QWEN, EMBED, LLAMA, QWEN, LLAMA, EMBED, LLAMA, QWEN, LLAMA] as const;
export const TENANTS = ['acme', 'acme', 'acme', 'initech', 'initech', 'globex'] as const;

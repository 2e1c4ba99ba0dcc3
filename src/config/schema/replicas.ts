import { z } from 'zod';
import { baseUrl, parseReplicaUrl, serviceUrl } from './addresses.ts';
import { amount, listOf, oneOf, text, wholeNumber } from './codecs.ts';
import { facts, RELOADED, section } from './keys.ts';
import { kubernetesSource } from './kubernetes.ts';
import { apiKey, NAMED, oneLine } from './names.ts';
import { replicaTls } from './tls.ts';

/** The engines whose API the gateway knows. */
const engines = ['vllm', 'sglang', 'llamacpp', 'tgi', 'ollama', 'openai'] as const;

const modelsTitle = 'auto, ["*"], or a list of different model names';
const modelName = z.string({ error: modelsTitle }).min(1, { error: modelsTitle });
const modelList = z.array(modelName).min(1, { error: modelsTitle });
const models = z
  .union([z.literal('auto'), modelList], { error: modelsTitle })
  .refine((names) => names === 'auto' || isModelList(names), { error: modelsTitle })
  .meta({ title: modelsTitle });

function isModelList(names: readonly string[]): boolean {
  return new Set(names).size === names.length && (names.length === 1 || !names.includes('*'));
}

/** What an hour of one accelerator costs. */
export const gpuHourPrice = () => amount(1_000_000);

const replica = section({
  name: text('a unique name of letters, digits and . _ ~ -, at most 128', NAMED).describe(
    'Its name in records and in paths of the admin API.',
  ),
  url: baseUrl('put a key into api_key', parseReplicaUrl)
    .optional()
    .describe('Its base URL, with or without `/v1` at the end. Any other path is prepended to /v1/….'),
  dns: serviceUrl()
    .optional()
    .describe(
      'Instead of `url`: a DNS name. Each of its addresses is a replica; if it begins with `_`, each target of its SRV records: see operations.md.',
    ),
  kubernetes: kubernetesSource
    .optional()
    .describe(
      'Instead of `url`: a Service whose pods are replicas, named after the pods. Pods that terminate or are not ready get no new requests: see kubernetes.md.',
    ),
  host: oneLine()
    .optional()
    .describe(
      'The machine it runs on. Default: the host of `url`, the target or address of `dns`, or the node of the pod.',
    ),
  gpu_model: oneLine().nullable().prefault(null).describe('The model of its GPUs.'),
  gpu_count: wholeNumber(0, 1_000_000)
    .nullable()
    .prefault(null)
    .describe(
      'How many GPUs it has. With at least one, records have `gpu_seconds`: see metrics.md#gpu-time.',
    ),
  gpu_hour_price: gpuHourPrice()
    .nullable()
    .prefault(null)
    .describe(
      'What one GPU costs per hour, in `currency`: see metrics.md#cost. Default: the price of its `gpu_model`.',
    ),
  models: models
    .prefault('auto')
    .describe('The models it serves. `auto`: those in its /v1/models. `["*"]`: any name.'),
  engine: oneOf(['auto', ...engines])
    .prefault('auto')
    .describe('`auto`: detected from its /v1/models; tgi must be set.'),
  api_key: apiKey()
    .optional()
    .describe("The bearer token for the replica, sent instead of the client's Authorization and x-api-key."),
  tls: replicaTls.optional().describe('TLS towards an https:// `url`.'),
  role: oneOf(['serve', 'shadow'])
    .prefault('serve')
    .describe(
      '`shadow`: the replica gets copies of live requests, and its answers are compared and dropped: see shadow.md.',
    ),
  max_inflight: wholeNumber(1, 1_000_000)
    .nullable()
    .prefault(null)
    .describe(
      'How many requests may be in flight on it; further ones wait (see `limits.queue`). `null`: no limit.',
    ),
}).meta({ oneOf: [{ required: ['url'] }, { required: ['dns'] }, { required: ['kubernetes'] }] });

/** `replicas`: where they are, what they serve, and what may be in flight on them. */
export const replicas = listOf(replica, 'a list of at least one replica, each with a dash before its name', {
  min: 1,
})
  .describe(
    'The inference servers, in the order of `round_robin`. Each has one of `url`, `dns` and `kubernetes`.',
  )
  .register(facts, RELOADED);

import { z } from 'zod';
import { baseUrl, parseReplicaUrl, serviceUrl } from './addresses.ts';
import { listOf, oneOf, text, wholeNumber } from './codecs.ts';
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

const replica = section({
  name: text('a unique name of letters, digits and . _ ~ -, at most 128', NAMED).describe(
    'The name of the replica in records and in the paths of the admin API.',
  ),
  url: baseUrl('put a key into api_key', parseReplicaUrl)
    .optional()
    .describe(
      'The base URL of the replica, with or without `/v1` at its end: `http://host:8000` and `http://host:8000/v1` mean the same. Any other path is prepended to /v1/….',
    ),
  dns: serviceUrl()
    .optional()
    .describe(
      'Instead of `url`: a DNS name for several replicas. Each of its addresses is a replica (`name-10.0.0.11`), or, if the name begins with `_`, each target of its SRV records (`name-0`).',
    ),
  kubernetes: kubernetesSource
    .optional()
    .describe(
      'Instead of `url`: a Service of Kubernetes whose pods are replicas, under the names of the pods. Pods that terminate or are not ready get no new requests: see kubernetes.md.',
    ),
  host: oneLine()
    .optional()
    .describe(
      'The machine that the replica runs on. Default: the host of `url`, the target or address of `dns`, or the node of the pod.',
    ),
  gpu_model: oneLine().nullable().prefault(null).describe('The model of the accelerators.'),
  gpu_count: wholeNumber(0, 1_000_000)
    .nullable()
    .prefault(null)
    .describe(
      'The number of accelerators. With at least one, records have `gpu_seconds` (docs/metrics.md#gpu-time).',
    ),
  models: models
    .prefault('auto')
    .describe(
      'The models that the replica serves. `auto`: read from its /v1/models. `["*"]`: any model name.',
    ),
  engine: oneOf(['auto', ...engines])
    .prefault('auto')
    .describe('The inference engine. `auto`: detected from its /v1/models; tgi must be configured.'),
  api_key: apiKey()
    .optional()
    .describe("The bearer token for the replica, sent instead of the client's Authorization and x-api-key."),
  tls: replicaTls.optional().describe('With an https:// URL: how the connection is secured.'),
  max_inflight: wholeNumber(1, 1_000_000)
    .nullable()
    .prefault(null)
    .describe(
      'The maximum number of requests in flight on the replica; further requests wait (see `limits.queue`). `null`: no limit.',
    ),
}).meta({ oneOf: [{ required: ['url'] }, { required: ['dns'] }, { required: ['kubernetes'] }] });

/** `replicas`: where they are, what they serve, and what may be in flight on them. */
export const replicas = listOf(replica, 'a list of at least one replica, each with a dash before its name', {
  min: 1,
})
  .describe('The inference servers, in the order that `round_robin` uses.')
  .register(facts, RELOADED);

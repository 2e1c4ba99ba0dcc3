import { z } from 'zod';
import { redisUrl } from './schema/addresses.ts';
import { limits, shutdown, timeouts } from './schema/bounds.ts';
import { apiClient, tenantLimits } from './schema/clients.ts';
import { duration, flag, listOf, oneOf, percent, text, wholeNumber } from './schema/codecs.ts';
import { gateway } from './schema/gateway.ts';
import { HEALTH_OFF, health } from './schema/health.ts';
import { jwt } from './schema/jwt.ts';
import { facts, factsOf, itemOf, type KeyFacts, keysOf, orOff, RELOADED, section } from './schema/keys.ts';
import { oneLine, path, plainName } from './schema/names.ts';
import { gpuHourPrice, replicas } from './schema/replicas.ts';
import { aliases, endpoints, headers, pass, retry, routing } from './schema/requests.ts';
import { exporting, history, metrics, prefixHash, trace } from './schema/telemetry.ts';

const discovery = section({
  models_interval: duration({ minMs: 100 })
    .prefault('30s')
    .describe('How often the gateway reads /v1/models of each replica.'),
  dns_interval: duration({ minMs: 100 })
    .prefault('10s')
    .describe('How often it resolves the DNS names in `url` and `dns`.'),
});

const rollout = section({
  ramp: duration({ minMs: 0 })
    .prefault('0s')
    .describe(
      'How long an undrained replica takes to get its full share of turns, unless the undrain says otherwise.',
    ),
});

const log = section({
  level: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .prefault('info')
    .describe('The lowest level to log.')
    .register(facts, RELOADED),
  format: oneOf(['auto', 'json', 'text'])
    .prefault('auto')
    .describe('`json`: one object per line. `text`: for people. `auto`: text on a terminal, else JSON.'),
  requests: flag()
    .prefault(false)
    .describe('Log one line per request, without its text.')
    .register(facts, RELOADED),
});

const state = section({
  redis: redisUrl().optional().describe('The Redis or Valkey server that the gateways share.'),
  prefix: plainName()
    .prefault('spangate')
    .describe('What all keys begin with. A different prefix is a different fleet.'),
});

const pricesTitle = 'GPU models with their price per hour, such as H100: 2.49';

/** `shadow`: what goes to replicas that are shadows. */
const shadow = section({
  requests: percent(1, 100)
    .prefault('5%')
    .describe(
      "The share of its models' live requests that a shadow gets. `gateway compare` and `gateway rollout --shadow` set their own.",
    ),
  max_inflight: wholeNumber(1, 1_000)
    .prefault(8)
    .describe('How many copies may be in flight on a shadow. What exceeds it is not copied.'),
  cut_with_client: flag()
    .prefault(false)
    .describe('Whether a copy ends when the client leaves. Otherwise the answer is read to its end.'),
});

/** The configuration file: the single source of types, JSON Schema, reference and checks. */
export const configSchema = section({
  gateway: gateway.prefault({}).describe('The listeners.'),
  headers: headers
    .prefault({})
    .describe('The request headers that name what is recorded. Without a default, none is read.')
    .register(facts, RELOADED),
  endpoints: endpoints
    .prefault([])
    .describe('Endpoints besides chat completions, completions and embeddings: see endpoints.md.')
    .register(facts, RELOADED),
  pass: pass
    .prefault([])
    .describe(
      'What is relayed to the next replica in turn without a record; `POST /v1/files/*` covers all paths below: see routing.md.',
    )
    .register(facts, RELOADED),
  models_listing: oneOf(['next_replica', 'union'])
    .prefault('next_replica')
    .describe(
      'How `GET /v1/models` is answered. `next_replica`: by the next replica in turn. `union`: by the gateway, with every model of all replicas; also `GET /v1/models/{id}`.',
    )
    .register(facts, RELOADED),
  aliases: aliases
    .prefault({})
    .describe('Other names for models, replaced in the request and back in the answer: see routing.md.')
    .register(facts, RELOADED),
  state_dir: path()
    .prefault('./state')
    .describe('Where the gateway keeps the salt, drains, history and record files.'),
  state: state.prefault({}).describe('Drains and limits that several gateways share: see fleet.md.'),
  replicas,
  gpu_hour_price: z
    .record(oneLine('the gpu_model of replicas'), gpuHourPrice(), { error: pricesTitle })
    .meta({ title: pricesTitle })
    .prefault({})
    .describe('What one GPU costs per hour, by `gpu_model`: see metrics.md#cost.')
    .register(facts, RELOADED),
  currency: text('a code of ISO 4217, such as EUR or USD', /^[A-Z]{3}$/)
    .prefault('USD')
    .describe('The currency of all prices and costs.'),
  clients: listOf(apiClient, 'a list of at least one client', { min: 1 })
    .optional()
    .describe(
      'The clients that may send requests. Without `clients`, `clients_file` and `jwt`, nobody needs an API key.',
    )
    .register(facts, RELOADED),
  clients_file: path()
    .optional()
    .describe('A file with more clients, read again when it changes: see api-keys.md.')
    .register(facts, RELOADED),
  jwt: jwt
    .optional()
    .describe(
      'Tokens (JWT) accepted as API keys, besides `clients` or instead of them: see api-keys.md. Limits apply to each tenant.',
    )
    .register(facts, RELOADED),
  tenant_limits: tenantLimits
    .optional()
    .describe(
      '`max_inflight`, `requests_per_minute` and `tokens_per_minute` of each tenant, over all its clients; `default` is for all others: see api-keys.md.',
    )
    .register(facts, RELOADED),
  routing: routing.prefault({}).describe('How a replica is chosen.').register(facts, RELOADED),
  progressive_usage: flag()
    .prefault(false)
    .describe(
      'Make vLLM and llama.cpp report tokens with each event, so that streams that clients leave have them too. It takes CPU: see endpoints.md.',
    )
    .register(facts, RELOADED),
  retry: retry
    .prefault({})
    .describe('Whether the next replica is tried if one answers that it cannot serve now: see routing.md.')
    .register(facts, RELOADED),
  health: health
    .prefault(HEALTH_OFF)
    .describe(
      'Which replicas count as failing, and so are tried after the others. Without this section, none: `passive`, `active` and `frozen_after` are off. `health: {}` turns them on with the values below.',
    )
    .register(facts, RELOADED),
  shadow: shadow
    .prefault({})
    .describe('What is copied to replicas with the role `shadow`: see shadow.md.')
    .register(facts, RELOADED),
  rollout: rollout
    .prefault({})
    .describe('How replicas come back: see rollouts.md.')
    .register(facts, RELOADED),
  discovery: discovery
    .prefault({})
    .describe('How often the gateway looks up what this file leaves open.')
    .register(facts, RELOADED),
  export: exporting.prefault({}).describe('How records reach a collector.'),
  history: orOff(history)
    .prefault({})
    .describe(
      "The gateway's own memory in state_dir: records, usage, a timeline; see history.md. `history: off` turns it off.",
    )
    .register(facts, RELOADED),
  statement_key: path()
    .optional()
    .describe(
      'The file with the key that `gateway statement` signs with, or its public part, which GET /admin/statement-key shows: see statements.md.',
    )
    .register(facts, RELOADED),
  metrics: metrics.prefault({}).describe('Metrics for GET /metrics and the collector.'),
  trace: trace.prefault({}).describe('Traces of clients, and spans.'),
  prefix_hash: prefixHash.prefault({}).describe('Salted hashes of the beginning of the request text.'),
  timeouts: timeouts.prefault({}).describe('How long the gateway waits.').register(facts, RELOADED),
  limits: limits.prefault({}).describe('How much the gateway holds.'),
  shutdown: shutdown.prefault({}).describe('The steps after SIGTERM or SIGINT.').register(facts, RELOADED),
  log: log.prefault({}).describe('The lines on standard output.'),
});

type DeepReadonly<T> = T extends (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/**
 * The configuration in effect: each key of the schema as a setting, in camel case, with its unit in the name. Null: the
 * key is not set. Paths are absolute.
 */
export type Config = DeepReadonly<z.output<typeof configSchema>>;

/** An entry of `replicas` with the contents of the files that its `tls` names. */
export type SecuredReplica = Omit<Config['replicas'][number], 'tls'> & {
  /** PEM; null where nothing is configured. `key` is secret. */
  readonly tls?: Omit<NonNullable<Config['replicas'][number]['tls']>, 'serverName'>;
  /** The name in its certificate, if that is not the host of `url`. */
  readonly tlsName?: string;
};

/** The schema of a key; undefined: there is no such key. */
export function schemaAt(path: readonly PropertyKey[]): z.core.$ZodType | undefined {
  let at: z.core.$ZodType | undefined = configSchema;
  for (const step of path) at = keysOf(at)[String(step)] ?? itemOf(at);
  return at;
}

/** The facts of a key. What is in a list is as secret as the list. */
export function factsAt(path: readonly PropertyKey[]): KeyFacts {
  const last = path.findLastIndex((step) => typeof step === 'string');
  const schema = schemaAt(path.slice(0, last + 1));
  return schema === undefined ? {} : factsOf(schema);
}

/** Whether anything decides which replicas are failing. */
export function hasHealthChecks({ passive, active, frozenAfterMs, peers }: Config['health']): boolean {
  return passive || active || frozenAfterMs !== null || peers !== null;
}

import type { z } from 'zod';
import { redisUrl } from './schema/addresses.ts';
import { limits, shutdown, timeouts } from './schema/bounds.ts';
import { apiClient, tenantLimits } from './schema/clients.ts';
import { duration, flag, listOf, oneOf } from './schema/codecs.ts';
import { gateway } from './schema/gateway.ts';
import { HEALTH_OFF, health } from './schema/health.ts';
import { jwt } from './schema/jwt.ts';
import { facts, factsOf, itemOf, type KeyFacts, keysOf, RELOADED, section } from './schema/keys.ts';
import { path, plainName } from './schema/names.ts';
import { replicas } from './schema/replicas.ts';
import { aliases, endpoints, headers, pass, retry, routing } from './schema/requests.ts';
import { exporting, metrics, prefixHash, trace } from './schema/telemetry.ts';

const discovery = section({
  models_interval: duration({ minMs: 100 })
    .prefault('30s')
    .describe(
      'How often the gateway reads /v1/models of replicas, to see whether they answer and what they serve, and /version of vLLM. One that does not answer is asked about every 2 seconds.',
    ),
  dns_interval: duration({ minMs: 100 })
    .prefault('10s')
    .describe('How often DNS names in `url` and `dns` are resolved again.'),
});

const rollout = section({
  ramp: duration({ minMs: 0 })
    .prefault('0s')
    .describe(
      'How long the share of turns of an undrained replica grows, from 5 % of an even share to all of it, if the undrain does not say. `0s`: not at all.',
    ),
});

const log = section({
  level: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .prefault('info')
    .describe('The lowest level that is logged.')
    .register(facts, RELOADED),
  format: oneOf(['auto', 'json', 'text'])
    .prefault('auto')
    .describe(
      '`json`: one JSON object per line. `text`: lines for people. `auto`: text if standard output is a terminal, else JSON.',
    ),
  requests: flag()
    .prefault(false)
    .describe('Whether each request is logged as one line, without its text.')
    .register(facts, RELOADED),
});

const state = section({
  redis: redisUrl()
    .optional()
    .describe(
      'A Redis or Valkey server through which gateways share drains, the number of requests in flight, and what clients use of their limits.',
    ),
  prefix: plainName()
    .prefault('spangate')
    .describe(
      'All keys begin with this prefix in braces. Gateways with different prefixes form separate fleets.',
    ),
});

/** The configuration file: the single source of types, JSON Schema, reference and checks. */
export const configSchema = section({
  gateway: gateway.prefault({}).describe('The listeners.'),
  headers: headers.prefault({}).describe('Request headers that are recorded.').register(facts, RELOADED),
  endpoints: endpoints
    .prefault([])
    .describe(
      'Which endpoints are relayed and recorded beside chat completions, completions and embeddings: see endpoints.md.',
    )
    .register(facts, RELOADED),
  pass: pass
    .prefault([])
    .describe(
      'What is relayed to the next replica in turn and not recorded, as a method and a path, such as `GET /version`. `POST /v1/files/*` stands for all paths below `/v1/files/`: see routing.md.',
    )
    .register(facts, RELOADED),
  models_listing: oneOf(['next_replica', 'union'])
    .prefault('next_replica')
    .describe(
      "What `GET /v1/models` answers: `next_replica`: that replica's own list; `union`: every model of all replicas once, and `GET /v1/models/{id}`.",
    )
    .register(facts, RELOADED),
  aliases: aliases
    .prefault({})
    .describe(
      'Further names of models, such as `gpt-4o: llama-3.3-70b`. The name is replaced in the request, and back in the answer: see routing.md.',
    )
    .register(facts, RELOADED),
  state_dir: path()
    .prefault('./state')
    .describe('The directory of the salt, the drains and the exported files.'),
  state: state.prefault({}).describe('State that several gateways share: see fleet.md.'),
  replicas,
  clients: listOf(apiClient, 'a list of at least one client', { min: 1 })
    .optional()
    .describe(
      'The clients that may send requests. Without this key and `clients_file` nobody needs an API key.',
    )
    .register(facts, RELOADED),
  clients_file: path()
    .optional()
    .describe(
      'A file with more clients: JSON lines, or a list in YAML of up to 1 MiB. It is read again when it changes.',
    )
    .register(facts, RELOADED),
  jwt: jwt
    .optional()
    .describe(
      'Tokens of an issuer (JWT) that are accepted as API keys, beside `clients` or instead of them: see api-keys.md. Limits apply to each tenant.',
    )
    .register(facts, RELOADED),
  tenant_limits: tenantLimits
    .optional()
    .describe(
      'Limits of each tenant over all its clients, with the keys `max_inflight`, `requests_per_minute` and `tokens_per_minute`; `default` is for every other tenant. Needs `clients`, `clients_file` or `jwt`: see api-keys.md.',
    )
    .register(facts, RELOADED),
  routing: routing.prefault({}).describe('How a replica is chosen.').register(facts, RELOADED),
  retry: retry
    .prefault({})
    .describe('Whether the next replica is tried if one answers that it cannot serve now: see routing.md.')
    .register(facts, RELOADED),
  health: health
    .prefault(HEALTH_OFF)
    .describe(
      'Which replicas are failing, and so tried after the others. Without this section none is: `passive`, `active` and `frozen_after` are then off. `health: {}` turns them on with the values below.',
    )
    .register(facts, RELOADED),
  rollout: rollout
    .prefault({})
    .describe('How replicas come back: see rollouts.md.')
    .register(facts, RELOADED),
  discovery: discovery
    .prefault({})
    .describe('How often the gateway looks up what this file does not set.')
    .register(facts, RELOADED),
  export: exporting.prefault({}).describe('How records reach a collector.'),
  metrics: metrics.prefault({}).describe('Metrics for GET /metrics and the collector.'),
  trace: trace.prefault({}).describe('Trace context of clients, and spans.'),
  prefix_hash: prefixHash.prefault({}).describe('Salted hashes of the beginning of the request text.'),
  timeouts: timeouts.prefault({}).describe('How long the gateway waits.').register(facts, RELOADED),
  limits: limits.prefault({}).describe('Limits on what the gateway holds.'),
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
  for (const step of path) at = typeof step === 'number' ? itemOf(at) : keysOf(at)[String(step)];
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

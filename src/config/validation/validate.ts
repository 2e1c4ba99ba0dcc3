import type { z } from 'zod';
import { closestName, isSameName } from '#base';
import { apiClient } from '../schema/clients.ts';
import { itemOf, keysOf } from '../schema/keys.ts';
import { type Config, configSchema, schemaAt } from '../schema.ts';
import { checkAddresses } from './check-addresses.ts';
import { checkPass } from './check-pass.ts';
import { TakenClients } from './taken-clients.ts';
import { isObject, type Violation } from './violation.ts';

/**
 * Checks plain data against the schema and the rules that span several keys. Returns all violations at once. Leaves out
 * top-level keys that begin with `x-`.
 */
export function validate(
  given: unknown,
): { readonly config: Config } | { readonly violations: readonly Violation[] } {
  const data = withoutExtensions(given);
  const parsed = configSchema.safeParse(data, { error: toExpectedContainer });
  const issues = parsed.error?.issues ?? [];
  const violations = [
    ...toViolations(issues),
    ...checkReplicas(data),
    ...checkShadows(data),
    ...checkClients(data),
    ...checkAcrossKeys(data),
  ];
  return parsed.success && violations.length === 0 ? { config: parsed.data } : { violations };
}

const EXPECTED_CONTAINERS: Readonly<Record<string, string>> = { object: 'keys with values', array: 'a list' };

const toExpectedContainer: z.core.$ZodErrorMap = (issue) => EXPECTED_CONTAINERS[issue.expected as string];

type Issue = NonNullable<ReturnType<typeof configSchema.safeParse>['error']>['issues'][number];
type UnknownKeys = Extract<Issue, { code: 'unrecognized_keys' }>;

/** More unknown keys of one value than these are counted, not explained: that takes time, and a file may have millions. */
const MAX_EXPLAINED_KEYS = 20;

function toViolations(issues: readonly Issue[]): Violation[] {
  return issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') return toUnknownKeys(issue);
    const inSection = issue.code === 'invalid_union' ? toSectionIssues(issue) : [];
    if (inSection.length > 0) return toViolations(inSection);
    const isItem = issue.path[0] === 'replicas' && issue.path.length === 2 && issue.code === 'invalid_type';
    const expected = isItem ? 'the keys of a replica, such as name and url' : issue.message;
    return [{ path: issue.path, expected }];
  });
}

/** Where `off` is expected, or keys with values: what is wrong with the keys, if there are any. */
function toSectionIssues({ path, errors }: Extract<Issue, { code: 'invalid_union' }>): readonly Issue[] {
  const ofSection = (errors.at(-1) ?? []) as readonly Issue[];
  const isInside = (issue: Issue) => issue.path.length > 0 || issue.code === 'unrecognized_keys';
  return ofSection.filter(isInside).map((issue) => ({ ...issue, path: [...path, ...issue.path] }));
}

function toUnknownKeys({ path, keys }: UnknownKeys): Violation[] {
  const explained = keys.slice(0, MAX_EXPLAINED_KEYS);
  const moreCount = keys.length - explained.length;
  return [
    ...explained.map((key) => ({ path: [...path, key], message: explainUnknownKey(path, key) })),
    ...(moreCount === 0 ? [] : [{ path, message: `${moreCount} more unknown keys` }]),
  ];
}

function withoutExtensions(data: unknown): unknown {
  if (!isObject(data) || Array.isArray(data)) return data;
  return Object.fromEntries(Object.entries(data).filter(([key]) => !isExtensionKey(key)));
}

/** Checks the data as given, so that these violations are reported together with those of the schema. */
function checkReplicas(data: unknown): Violation[] {
  const given: readonly unknown[] = isObject(data) && Array.isArray(data.replicas) ? data.replicas : [];
  const firstWith = new Map<unknown, number>();
  return given.flatMap((replica, index) => {
    if (!isObject(replica)) return [];
    const path = ['replicas', index];
    const first = firstWith.get(replica.name);
    if (typeof replica.name === 'string' && first === undefined) firstWith.set(replica.name, index);
    return [
      ...(first === undefined
        ? []
        : [{ path: [...path, 'name'], expected: `a name that replicas[${first}] does not have` }]),
      ...[...checkAddress(replica), ...checkReplicaTls(replica)].map((violation) => ({
        ...violation,
        path: [...path, ...violation.path],
      })),
    ];
  });
}

/** Somebody must serve what a shadow gets copies of, as far as the file says who serves what. */
function checkShadows(data: unknown): Violation[] {
  const given: readonly unknown[] = isObject(data) && Array.isArray(data.replicas) ? data.replicas : [];
  const serving = given.filter(isObject).filter(({ role }) => role !== 'shadow');
  const mayServe = (model: unknown) =>
    serving.some(({ models }) =>
      Array.isArray(models) ? models.includes(model) || models.includes('*') : true,
    );
  return given.flatMap((replica, index) => {
    if (!isObject(replica) || replica.role !== 'shadow') return [];
    const path = ['replicas', index, 'role'];
    if (serving.length === 0) return [{ path, message: 'a shadow needs a replica that serves clients' }];
    const models: readonly unknown[] = Array.isArray(replica.models) ? replica.models : [];
    return models.every((model) => model === '*' || mayServe(model))
      ? []
      : [{ path, message: 'no replica would be left that serves one of its models to clients' }];
  });
}

/** Exactly one of `url`, `dns` and `kubernetes`; there, at most one of `port` and `port_name`. */
function checkAddress({ kubernetes, ...replica }: Record<string, unknown>): Violation[] {
  const hasUrl = replica.url !== undefined;
  const hasDns = replica.dns !== undefined;
  if (hasUrl && hasDns) return [{ path: ['dns'], message: 'a replica has either url or dns, not both' }];
  if (kubernetes !== undefined && (hasUrl || hasDns)) {
    const message = `a replica has either ${hasUrl ? 'url' : 'dns'} or kubernetes, not both`;
    return [{ path: ['kubernetes'], message }];
  }
  if (isObject(kubernetes) && kubernetes.port !== undefined && kubernetes.port_name !== undefined) {
    return [{ path: ['kubernetes', 'port_name'], message: 'there is either port or port_name, not both' }];
  }
  if (hasUrl || hasDns || kubernetes !== undefined) return [];
  return [{ path: ['url'], expected: 'a URL here, or a name under the key dns' }];
}

/** TLS needs an https URL, and a client certificate its key. */
function checkReplicaTls({ url, dns, kubernetes, tls }: Record<string, unknown>): Violation[] {
  if (!isObject(tls)) return [];
  const violations: Violation[] = [];
  const address = url ?? dns ?? (isObject(kubernetes) ? `${kubernetes.scheme ?? 'http'}:` : undefined);
  if (typeof address === 'string' && /^http:/i.test(address)) {
    violations.push({ path: ['tls'], message: 'the URL of this replica is not https://' });
  }
  for (const [given, missing] of [
    ['cert', 'key'],
    ['key', 'cert'],
  ] as const) {
    if (tls[given] === undefined || tls[missing] !== undefined) continue;
    violations.push({ path: ['tls', missing], expected: `the path of the file that belongs to ${given}` });
  }
  return violations;
}

/** No two clients have the same name, or the same key. */
function checkClients(data: unknown): Violation[] {
  const given: readonly unknown[] = isObject(data) && Array.isArray(data.clients) ? data.clients : [];
  const taken = new TakenClients();
  return given.flatMap((client, index) => {
    if (!isObject(client)) return [];
    return taken
      .take(client.name, [client.key_sha256].flat(), `clients[${index}]`)
      .map(({ key, message }) => ({ path: ['clients', index, key], message }));
  });
}

/** Without keys or tokens nobody knows the tenant. */
function checkTenantLimits(data: Readonly<Record<string, unknown>>): Violation[] {
  const { tenant_limits, clients, clients_file, jwt } = data;
  if (tenant_limits === undefined) return [];
  const violations: Violation[] = [];
  if ([clients, clients_file, jwt].every((given) => given === undefined)) {
    const message = 'tenants are known by keys or tokens: it needs clients, clients_file or jwt';
    violations.push({ path: ['tenant_limits'], message });
  }
  // The schema leaves this key out, and its limits would be lost.
  if (isObject(tenant_limits) && Object.hasOwn(tenant_limits, '__proto__')) {
    violations.push({
      path: ['tenant_limits', '__proto__'],
      message: 'this name cannot have limits of its own',
    });
  }
  return violations;
}

/** Checks one entry of `clients` that stands in a file of its own. Paths begin with `['clients', 0]`. */
export function validateClient(
  given: unknown,
): { readonly client: z.output<typeof apiClient> } | { readonly violations: readonly Violation[] } {
  const parsed = apiClient.safeParse(given, { error: toExpectedContainer });
  if (parsed.success) return { client: parsed.data };
  const issues = parsed.error.issues.map((issue) => ({ ...issue, path: ['clients', 0, ...issue.path] }));
  return { violations: toViolations(issues) };
}

/** Checks each section on its own, so that a violation in one does not hide those of another. */
function checkAcrossKeys(data: unknown): Violation[] {
  if (!isObject(data)) return [];
  const violations: Violation[] = [];
  const { data: exporting } = configSchema.in.shape.export.safeParse(data.export);
  if (exporting !== undefined && exporting.batchSize > exporting.queueSize) {
    const message = `${exporting.batchSize} is more than export.queue_size, ${exporting.queueSize}`;
    violations.push({ path: ['export', 'batch_size'], message });
  }
  if (exporting !== undefined && exporting.retry.initialMs > exporting.retry.maxMs) {
    violations.push({ path: ['export', 'retry', 'initial'], message: 'it is longer than export.retry.max' });
  }
  if (exporting !== undefined && exporting.file.maxSizeBytes > exporting.file.maxTotalBytes / 2) {
    const message = 'it is more than half of export.file.max_total';
    violations.push({ path: ['export', 'file', 'max_size'], message });
  }
  const { data: limits } = configSchema.in.shape.limits.safeParse(data.limits);
  if (limits !== undefined && limits.bodyBytes > limits.bufferedBytes) {
    violations.push({ path: ['limits', 'body'], message: 'it is more than limits.buffered' });
  }
  const { data: routing } = configSchema.in.shape.routing.safeParse(data.routing);
  const hasTrusted = isObject(data.gateway) && data.gateway.trusted_proxies !== undefined;
  if (routing?.tell === 'trusted' && !hasTrusted) {
    violations.push({ path: ['routing', 'tell'], message: 'it needs gateway.trusted_proxies' });
  }
  return [
    ...violations,
    ...checkTenantLimits(data),
    ...checkAliases(data),
    ...checkPrices(data),
    ...checkPass(data),
    ...checkAddresses(data),
  ];
}

/** The schema leaves this key out, and its price would be lost. */
function checkPrices({ gpu_hour_price }: Readonly<Record<string, unknown>>): Violation[] {
  if (!isObject(gpu_hour_price) || !Object.hasOwn(gpu_hour_price, '__proto__')) return [];
  return [{ path: ['gpu_hour_price', '__proto__'], message: 'this model cannot have a price' }];
}

/** No alias stands for another one. */
function checkAliases({ aliases }: Readonly<Record<string, unknown>>): Violation[] {
  if (!isObject(aliases)) return [];
  const names = new Set(Object.keys(aliases));
  return Object.entries(aliases).flatMap(([name, model]) =>
    typeof model === 'string' && names.has(model)
      ? [{ path: ['aliases', name], expected: 'the name of a model: this is an alias itself' }]
      : [],
  );
}

/** A top-level key that the file's author may use for anchors; the gateway does not read it. */
function isExtensionKey(key: string): boolean {
  return key.startsWith('x-');
}

/** Says what is wrong with a key that the schema does not have, and what was probably meant. */
function explainUnknownKey(path: readonly PropertyKey[], key: string): string {
  if (isExtensionKey(key)) return 'unknown key; keys that begin with x- are ignored at the top level only';
  const siblings = Object.keys(keysOf(schemaAt(path)));
  // A key with that name in another section: in a section with keys of its own it is one guess among them.
  const far = allPaths(configSchema).find((known) => isSameName(known.split('.').at(-1) ?? '', key));
  const meant = closestName(key, siblings) ?? (path.length === 0 ? far : undefined);
  if (meant !== undefined) return `unknown key; did you mean ${meant}?`;
  const own = path.length === 0 ? ', or a key of your own that begins with x-' : '';
  const other = far === undefined ? '' : `; or did you mean ${far}?`;
  return `unknown key, expected one of ${siblings.join(', ')}${own}${other}`;
}

function allPaths(schema: z.core.$ZodType, prefix = ''): string[] {
  return Object.entries(keysOf(schema)).flatMap(([key, value]) => {
    const item = itemOf(value);
    return [
      prefix + key,
      ...allPaths(value, `${prefix}${key}.`),
      ...(item === undefined ? [] : allPaths(item, `${prefix}${key}[].`)),
    ];
  });
}

import { toConfigJsonSchema } from './json-schema.ts';
import { type ConfigFile, configSchema } from './schema.ts';
import { suggestKey } from './suggest.ts';

/** What is wrong with one value or key: where, and what was expected there or is wrong with it. */
export type Complaint =
  | { readonly path: readonly PropertyKey[]; readonly expected: string }
  | { readonly path: readonly PropertyKey[]; readonly wrong: string };

/** Checks plain data against the schema and the rules that span several keys: everything wrong at once. */
export function validate(
  data: unknown,
): { readonly file: ConfigFile } | { readonly complaints: readonly Complaint[] } {
  const parsed = configSchema.safeParse(data, {
    error: (issue) => EXPECTED_CONTAINERS[issue.expected as string],
  });
  const issues = parsed.error?.issues ?? [];
  const complaints = [...issues.flatMap(toComplaints), ...wrongReplicas(data), ...contradictions(data)];
  return parsed.success && complaints.length === 0 ? { file: parsed.data } : { complaints };
}

const EXPECTED_CONTAINERS: Readonly<Record<string, string>> = { object: 'keys with values', array: 'a list' };

type Issue = NonNullable<ReturnType<typeof configSchema.safeParse>['error']>['issues'][number];

function toComplaints(issue: Issue): Complaint[] {
  if (issue.code !== 'unrecognized_keys') return [{ path: issue.path, expected: issue.message }];
  return issue.keys.map((key) => {
    const suggestion = suggestKey(toConfigJsonSchema(), issue.path, key);
    const question = suggestion === null ? '' : `; did you mean ${suggestion}?`;
    return { path: [...issue.path, key], wrong: `unknown key${question}` };
  });
}

/** On the data as given, so that it is told together with whatever else is wrong. */
function wrongReplicas(data: unknown): Complaint[] {
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
      ...wrongAddress(replica).map((complaint) => ({ ...complaint, path: [...path, ...complaint.path] })),
    ];
  });
}

/** Exactly one of `url` and `dns`. */
function wrongAddress(replica: Record<string, unknown>): Complaint[] {
  const hasUrl = replica.url !== undefined;
  const hasDns = replica.dns !== undefined;
  if (hasUrl && hasDns) return [{ path: ['dns'], wrong: 'a replica has either url or dns' }];
  return hasUrl || hasDns ? [] : [{ path: ['url'], expected: 'a URL here, or a name under the key dns' }];
}

/** Section by section, so that a mistake in one does not hide another's. */
function contradictions(data: unknown): Complaint[] {
  if (!isObject(data)) return [];
  const complaints: Complaint[] = [];
  const { data: exporting } = configSchema.shape.export.safeParse(data.export);
  if (exporting !== undefined && exporting.batch_size > exporting.queue_size) {
    const wrong = `${exporting.batch_size} is more than export.queue_size, ${exporting.queue_size}`;
    complaints.push({ path: ['export', 'batch_size'], wrong });
  }
  if (exporting !== undefined && exporting.retry.initial > exporting.retry.max) {
    complaints.push({ path: ['export', 'retry', 'initial'], wrong: 'it is longer than export.retry.max' });
  }
  if (exporting !== undefined && exporting.file.max_size > exporting.file.max_total / 2) {
    const wrong = 'it is more than half of export.file.max_total';
    complaints.push({ path: ['export', 'file', 'max_size'], wrong });
  }
  const { data: limits } = configSchema.shape.limits.safeParse(data.limits);
  if (limits !== undefined && limits.body > limits.buffered) {
    complaints.push({ path: ['limits', 'body'], wrong: 'it is more than limits.buffered' });
  }
  return complaints;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

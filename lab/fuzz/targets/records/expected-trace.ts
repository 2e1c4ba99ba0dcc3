import { OPERATIONS, RECORD_FIELDS } from '#otel/record/registry';

/** A request that a file of records has. */
export interface GivenRequest {
  readonly id: string;
  readonly atMs: number;
  readonly endedAtMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly hashes: readonly string[];
}

/** What a file of records says, read as a whole with JSON.parse. */
export interface GivenFile {
  readonly requests: readonly GivenRequest[];
  readonly brokenLines: number;
  readonly withoutTokens: number;
}

type Json = Readonly<Record<string, unknown>>;
type Field = keyof typeof RECORD_FIELDS;

const REQUIRED = ['request_id', 'trace_id', 'ts', 'endpoint', 'e2e_ms', 'status', 'stream'] as const;
const MAX_TOKENS = 100_000_000;

/** The requests of a file. `model`: only those of this one. */
export function requestsOf(text: string, model: string | undefined): GivenFile {
  const lines = text.split('\n').filter((line) => line !== '');
  const records = lines.map(spansOf);
  const wanted = records
    .flatMap((spans) => spans ?? [])
    .map((span) => (field: Field) => fieldOf(span, field))
    .filter((get) => REQUIRED.every((field) => get(field) !== undefined) && get('truncated') !== false)
    .filter((get) => model === undefined || get('model') === model);
  const requests = wanted.flatMap((get) => toRequest(get) ?? []);
  return {
    requests,
    brokenLines: records.filter((spans) => spans === null).length,
    withoutTokens: wanted.length - requests.length,
  };
}

/** Files in the order in which their requests ended. */
export function merge(files: readonly (readonly GivenRequest[])[]): readonly GivenRequest[] {
  const rest = files.map((requests) => [...requests]);
  const merged: GivenRequest[] = [];
  for (;;) {
    const [first] = rest
      .filter(({ length }) => length > 0)
      .sort((a, b) => Math.sign((a[0]?.endedAtMs ?? 0) - (b[0]?.endedAtMs ?? 0)) || 0);
    const request = first?.shift();
    if (request === undefined) return merged;
    merged.push(request);
  }
}

/** Each request once, in the order of their arrival. */
export function inOrder(requests: readonly GivenRequest[]): readonly GivenRequest[] {
  const byId = new Map<string, GivenRequest>();
  for (const request of requests) if (!byId.has(request.id)) byId.set(request.id, request);
  return [...byId.values()].sort((a, b) => a.atMs - b.atMs);
}

/** The trace of requests, of which each hash is a block. */
export function traceOf(requests: readonly GivenRequest[], blockTokens: number): string {
  const ids = new Map<string, number>();
  let next = 0;
  const begin = requests[0]?.atMs ?? 0;
  const lines = requests.map(({ atMs, inputTokens, outputTokens, hashes }) => {
    const blocks = Array.from({ length: Math.ceil(inputTokens / blockTokens) }, (_, block) => {
      const hash = (block + 1) * blockTokens <= inputTokens ? hashes[block] : undefined;
      const id = ids.get(hash ?? '') ?? next++;
      if (hash !== undefined) ids.set(hash, id);
      return id;
    });
    return `{"timestamp": ${atMs - begin}, "input_length": ${inputTokens}, "output_length": ${outputTokens}, "hash_ids": [${blocks.join(', ')}]}\n`;
  });
  return lines.join('');
}

/** Null: the line is no exported spans. */
function spansOf(line: string): readonly unknown[] | null {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isObject(message) || !Array.isArray(message.resourceSpans)) return null;
  return message.resourceSpans
    .flatMap((each) => listOf(each, 'scopeSpans'))
    .flatMap((each) => listOf(each, 'spans'));
}

/** The last value of a field that has the field's type. */
function fieldOf(span: unknown, field: Field): unknown {
  const { name, type } = RECORD_FIELDS[field];
  const values = listOf(span, 'attributes').flatMap((attribute) =>
    isObject(attribute) && attribute.key === name ? [typed(type, attribute.value)] : [],
  );
  return values.findLast((value) => value !== undefined);
}

function typed(type: string, value: unknown): unknown {
  if (!isObject(value)) return undefined;
  const { stringValue, boolValue, doubleValue, intValue, arrayValue } = value;
  if (type === 'string') return typeof stringValue === 'string' ? stringValue : undefined;
  if (type === 'bool') return typeof boolValue === 'boolean' ? boolValue : undefined;
  // JSON has numbers that are too large for a double.
  if (type === 'double') return Number.isFinite(doubleValue) ? doubleValue : undefined;
  if (type === 'int') return toInt(intValue);
  if (!isObject(arrayValue)) return undefined;
  return listOf(arrayValue, 'values').flatMap((item) => typed('string', item) ?? []);
}

function toInt(value: unknown): number | undefined {
  const isText = typeof value === 'string' && /^(?:0|-?[1-9]\d{0,15})$/.test(value);
  const number = isText ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
}

function toRequest(get: (field: Field) => unknown): GivenRequest | null {
  const [inputTokens, outputTokens] = [get('prompt_tokens'), get('completion_tokens')];
  const atMs = Date.parse(String(get('ts')));
  const operation = OPERATIONS.get(String(get('endpoint')));
  if (operation !== 'chat' && operation !== 'text_completion') return null;
  if (get('replica') === undefined || get('model') === undefined || Number.isNaN(atMs)) return null;
  if (!isTokenCount(inputTokens) || !isTokenCount(outputTokens)) return null;
  const hashes = (get('prefix_hashes') ?? []) as readonly string[];
  const areHashes = hashes.every((hash) => /^[0-9a-f]{16}$/.test(hash));
  return {
    id: String(get('request_id')),
    atMs,
    endedAtMs: atMs + Number(get('e2e_ms')),
    inputTokens,
    outputTokens,
    hashes: areHashes ? hashes : [],
  };
}

function isTokenCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_TOKENS;
}

function listOf(value: unknown, member: string): readonly unknown[] {
  const list = isObject(value) ? value[member] : undefined;
  return Array.isArray(list) ? list : [];
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

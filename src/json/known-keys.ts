/**
 * The frequent member names of the APIs that the gateway speaks. To decode a name of a dozen bytes costs as much as to
 * scan a hundred: these names are looked up instead. Other names work too, and are not kept.
 */
export const KNOWN_NAMES: readonly string[] = [
  ...[
    'id',
    'object',
    'created',
    'model',
    'choices',
    'usage',
    'timings',
    'metrics',
    'error',
    'system_fingerprint',
  ],
  ...['service_tier', 'index', 'delta', 'message', 'finish_reason', 'stop_reason', 'logprobs', 'token_ids'],
  ...[
    'role',
    'content',
    'text',
    'reasoning',
    'reasoning_content',
    'refusal',
    'tool_calls',
    'function_call',
    'audio',
  ],
  ...['prompt_tokens', 'completion_tokens', 'total_tokens', 'cached_tokens', 'reasoning_tokens'],
  ...['prompt_tokens_details', 'completion_tokens_details', 'prompt_logprobs', 'annotations', 'obfuscation'],
  ...['response', 'item', 'item_id', 'sequence_number', 'output_index', 'content_index', 'status', 'output'],
  ...['content_block', 'partial_json', 'thinking', 'source', 'system', 'instructions', 'metadata'],
  ...['input_tokens', 'output_tokens', 'input_tokens_details', 'output_tokens_details'],
  ...['cache_read_input_tokens', 'cache_creation_input_tokens', 'max_output_tokens'],
  ...['messages', 'prompt', 'input', 'tools', 'tool_choice', 'stream', 'stream_options', 'include_usage'],
  ...[
    'max_tokens',
    'max_completion_tokens',
    'temperature',
    'top_p',
    'n',
    'stop',
    'seed',
    'user',
    'type',
    'name',
  ],
];

const SLOTS = 1024;
const MAX_BYTES = Math.max(...KNOWN_NAMES.map((name) => name.length));

interface KnownKey {
  readonly name: string;
  readonly bytes: Buffer;
}

/** By the hash of the name. A name whose slot is taken is in the next free one. */
const table: (KnownKey | undefined)[] = new Array(SLOTS).fill(undefined);
for (const name of KNOWN_NAMES) {
  const bytes = Buffer.from(name);
  let slot = slotOf(bytes, 0, bytes.length);
  while (table[slot] !== undefined) slot = (slot + 1) % SLOTS;
  table[slot] = { name, bytes };
}

/** The text of a known key; undefined: the key has to be decoded. */
export function toKnownKey(bytes: Buffer, start: number, end: number): string | undefined {
  if (end - start > MAX_BYTES) return undefined;
  for (let slot = slotOf(bytes, start, end); ; slot = (slot + 1) % SLOTS) {
    const known = table[slot];
    if (known === undefined) return undefined;
    if (known.bytes.length === end - start && hasAt(bytes, start, known.bytes)) return known.name;
  }
}

function slotOf(bytes: Buffer, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + (bytes[at] as number)) | 0;
  return (hash ^ (hash >>> 10)) & (SLOTS - 1);
}

/** Whether `bytes` has these few bytes at `start`. */
function hasAt(bytes: Buffer, start: number, wanted: Buffer): boolean {
  if (bytes.length - start < wanted.length) return false;
  for (let i = 0; i < wanted.length; i++) if (bytes[start + i] !== wanted[i]) return false;
  return true;
}

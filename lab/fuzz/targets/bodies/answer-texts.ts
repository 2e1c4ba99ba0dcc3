import type { Random } from '../../../fuzz-http/random.ts';
import { jsonString, jsonText } from '../../generate.ts';

const USAGE_WORDS = [
  ...[
    'prompt_tokens',
    'completion_tokens',
    'input_tokens',
    'output_tokens',
    'total_tokens',
    'reasoning_tokens',
  ],
  ...['cached_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens', 'prompt_cache_hit_tokens'],
  ...['audio_tokens', 'image_tokens', 'seconds', 'x'],
];
const DETAIL_WORDS = [
  'prompt_tokens_details',
  'completion_tokens_details',
  'input_tokens_details',
  'output_tokens_details',
];
const WORDS = [
  ...[
    'id',
    'model',
    'choices',
    'usage',
    'timings',
    'metrics',
    'index',
    'finish_reason',
    'delta',
    'content',
    'text',
  ],
  ...[
    'type',
    'message',
    'response',
    'status',
    'error',
    'duration',
    'meta',
    'tokens',
    'billed_units',
    'stop',
    'a',
  ],
];
const TYPES = [
  ...[
    'message_start',
    'message_delta',
    'message_stop',
    'content_block_delta',
    'content_block_start',
    'error',
    'ping',
  ],
  ...['response.created', 'response.completed', 'response.failed', 'response.output_text.delta'],
  ...['transcript.text.delta', 'transcript.text.done'],
];
const FIGURES = [
  '0',
  '1',
  '17',
  '4096',
  '9007199254740991',
  '-1',
  '1.5',
  '1e400',
  'null',
  '"7"',
  '9007199254740993',
];

/** A usage object. */
function usageText(random: Random): string {
  const members = Array.from({ length: random.below(6) }, () => {
    if (!random.chance(25)) return `"${random.pick(USAGE_WORDS)}":${figure(random)}`;
    return `"${random.pick(DETAIL_WORDS)}":{"${random.pick(USAGE_WORDS)}":${figure(random)}}`;
  });
  return `{${members.join(',')}}`;
}

function figure(random: Random): string {
  return random.chance(75) ? String(random.below(100_000)) : random.pick(FIGURES);
}

/** A whole answer of this endpoint, or something like it. */
export function answerText(random: Random, path: string): string {
  const members = [
    `"id":"r-1"`,
    `"usage":${random.chance(90) ? usageText(random) : jsonText(random, WORDS, 2)}`,
  ];
  if (path.includes('completions'))
    members.push(`"choices":[${Array.from({ length: random.below(3) }, () => choice(random)).join(',')}]`);
  if (random.chance(30)) members.push(`"timings":{"predicted_ms":${figure(random)}}`);
  if (random.chance(20)) members.push(`"duration":${random.pick(['"3.5"', '3.5', '"x"', '-1'])}`);
  if (random.chance(20)) members.push(`"meta":{"tokens":{"input_tokens":${figure(random)}}}`);
  if (random.chance(20))
    members.push(`"status":${jsonString(random, ['completed', 'failed', 'in_progress'])}`);
  if (random.chance(40)) members.push(`${jsonString(random, WORDS)}:${jsonText(random, WORDS, 3)}`);
  return `{${shuffle(random, members).join(',')}}`;
}

/** Events of a stream of this endpoint, or something like them; many of them alike, as engines send them. */
export function eventTexts(random: Random, path: string): string {
  const end = random.pick(['\n\n', '\n\n', '\r\n\r\n']);
  const events: string[] = [];
  for (let left = random.below(7); left > 0; left--) {
    const event = random.chance(70) ? outputEvent(random, path) : otherEvent(random);
    const repeats = random.chance(40) ? 2 + random.below(3) : 1;
    for (let turn = 0; turn < repeats; turn++) {
      const data =
        turn === 0
          ? event
          : event.replace('"hello"', `"${random.text('abc é\\n', 5).replaceAll('\\', '\\\\')}"`);
      events.push(`data: ${data}${end}`);
    }
  }
  if (random.chance(50)) events.push(`data: [DONE]${end}`);
  return events.join('');
}

function outputEvent(random: Random, path: string): string {
  if (path === '/v1/messages')
    return '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}';
  if (path === '/v1/responses')
    return '{"type":"response.output_text.delta","delta":"hello","sequence_number":4}';
  if (path.includes('audio')) return '{"type":"transcript.text.delta","delta":"hello"}';
  if (path === '/v1/completions')
    return `{"id":"c","choices":[{"index":0,"text":"hello","finish_reason":null}]}`;
  const member = random.pick(['content', 'content', 'reasoning_content', 'refusal', 'other']);
  return `{"id":"c","model":"m","choices":[{"index":${random.below(2)},"delta":{"${member}":"hello"},"finish_reason":null}]}`;
}

function otherEvent(random: Random): string {
  const usage = `"usage":${random.chance(85) ? usageText(random) : 'null'}`;
  switch (random.below(5)) {
    case 0:
      return `{"id":"c","choices":[${random.chance(50) ? '' : choice(random)}],${usage}}`;
    case 1:
      return `{"type":"${random.pick(TYPES)}",${usage},"delta":{"stop_reason":"end_turn"}}`;
    case 2:
      return `{"type":"${random.pick(TYPES)}","response":{"id":"r","status":"completed",${usage}}}`;
    case 3:
      return `{"message":{"id":"m",${usage}},"type":"${random.pick(TYPES)}"}`;
    default:
      return jsonText(random, WORDS, 3).replaceAll(/[\r\n]/g, ' ');
  }
}

function choice(random: Random): string {
  const reason = random.pick(['"stop"', '"length"', 'null', '"a b"', '7']);
  return `{"index":${random.pick(['0', '1', '2', '-1', '1e9', '"0"'])},"delta":{"content":"hello"},"finish_reason":${reason}}`;
}

function shuffle<T>(random: Random, items: readonly T[]): T[] {
  const shuffled = [...items];
  for (let at = shuffled.length - 1; at > 0; at--) {
    const other = random.below(at + 1);
    [shuffled[at], shuffled[other]] = [shuffled[other] as T, shuffled[at] as T];
  }
  return shuffled;
}

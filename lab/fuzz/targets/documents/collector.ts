import { decodeMessage, encodeMessage } from '#testkit/otlp/otlp-messages.ts';
import { toCollectorMessage, toPartialSuccess } from '../../../../otel/export/collector-answer.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must, mustEqual } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';

const WORDS = [
  'partialSuccess',
  'rejectedSpans',
  'errorMessage',
  'message',
  'code',
  'toString',
  'valueOf',
  '3',
  '-1',
];
const COUNTS = ['0', '1', '512', '9007199254740993', '-1', '-9223372036854775808', '9223372036854775807'];
const TYPES = ['application/x-protobuf', 'application/json', 'Application/X-Protobuf; charset=utf-8', ''];
const MAX_MESSAGE_CHARS = 256;

/** The answers of a collector: partial success, and the message of a failure. */
export const COLLECTOR: FuzzTarget = {
  name: 'collector',
  reads: "a collector's answers: partial success and failures, in protobuf and JSON",
  oracle:
    'protobufjs and JSON.parse find the same count and message; the count is a safe integer, the message is short',
  variants: TYPES.length,
  ciInputs: 20_000,
  generate: (random, variant) =>
    variant % 2 === 0 && variant < 3 ? protobufAnswer(random) : jsonAnswer(random),
  check({ bytes, variant }) {
    const body = { type: TYPES[variant] ?? '', bytes };
    const isProtobuf = body.type.toLowerCase().startsWith('application/x-protobuf');
    const { rejectedCount, message } = toPartialSuccess(body);
    must(Number.isSafeInteger(rejectedCount), `the count is ${rejectedCount}`);
    for (const text of [message, toCollectorMessage(body)]) {
      must(text === undefined || text.length <= MAX_MESSAGE_CHARS, 'a message is too long');
    }
    const expected = isProtobuf ? decode(bytes) : parse(bytes);
    if (expected === null) return false;
    mustEqual('the count', rejectedCount + 0, expected);
    return true;
  },
  read({ bytes, variant }) {
    const body = { type: TYPES[variant] ?? '', bytes };
    return [toPartialSuccess(body), toCollectorMessage(body)];
  },
};

function protobufAnswer(random: Random): Buffer {
  const status = { code: random.below(17), message: random.text('abc é\n', 300) };
  if (random.chance(30)) return Buffer.from(encodeMessage('RpcStatus', status));
  const partialSuccess = {
    ...(random.chance(80) ? { rejectedSpans: random.pick(COUNTS) } : {}),
    ...(random.chance(60) ? { errorMessage: status.message } : {}),
  };
  return Buffer.from(
    encodeMessage('ExportTraceServiceResponse', random.chance(90) ? { partialSuccess } : {}),
  );
}

function jsonAnswer(random: Random): Buffer {
  const count = random.chance(50) ? `"${random.pick(COUNTS)}"` : jsonText(random, WORDS, 2);
  if (random.chance(60)) {
    return Buffer.from(
      `{"partialSuccess":{"rejectedSpans":${count},"errorMessage":${jsonText(random, WORDS, 1)}}}`,
    );
  }
  return Buffer.from(jsonText(random, WORDS));
}

/** The count of a message that protobufjs writes in the same bytes; null: it is another one, or none. */
function decode(bytes: Buffer): number | null {
  try {
    const message = decodeMessage('ExportTraceServiceResponse', bytes) as Answer;
    if (!Buffer.from(encodeMessage('ExportTraceServiceResponse', message)).equals(bytes)) return null;
    return toSafe(message.partialSuccess?.rejectedSpans ?? 0);
  } catch {
    return null;
  }
}

interface Answer {
  readonly partialSuccess?: { readonly rejectedSpans?: unknown } | null;
}

/** The count of an answer in JSON, where it is a number or a text of digits; null: it is another one, or none. */
function parse(bytes: Buffer): number | null {
  try {
    const answer = JSON.parse(bytes.toString()) as Answer | null;
    const count = answer?.partialSuccess?.rejectedSpans;
    if (typeof count === 'number' && Number.isInteger(count)) return toSafe(count);
    return typeof count === 'string' && /^-?\d+$/.test(count) ? toSafe(count) : null;
  } catch {
    return null;
  }
}

function toSafe(count: unknown): number {
  const number = Number(count) + 0;
  return Number.isSafeInteger(number) ? number : 0;
}

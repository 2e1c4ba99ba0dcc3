import { mutate } from './mutate.ts';
import { Random } from './random.ts';
import type { Input, Side } from './read-message.ts';
import { REAL_REQUESTS, REAL_RESPONSES } from './real-messages.ts';
import { FIELD_LINES, LINE_ENDS, SPECIAL_BYTES } from './tricks/field-lines.ts';
import { DATA_ENDS, FRAMING_LINES, LAST_CHUNKS, SIZE_LINES } from './tricks/framing.ts';
import { REQUEST_LINES, STATUS_LINES } from './tricks/start-lines.ts';

const METHODS = 'GET POST POST POST HEAD PUT DELETE OPTIONS PATCH TRACE M-SEARCH'.split(' ');
const TARGETS = ['/', '/v1/chat/completions', '/v1/models?a=b&c', '/a%2fb;c/../d', '//x', 'http://g/x', '*'];
const HOSTS = ['g', 'gateway:8080', '127.0.0.1', '[::1]:80', ''];
const STATUSES = ['100', '103', '200', '200', '200', '200', '204', '304', '404', '500', '503', '999'];
const REASONS = ['OK', '', 'Not Found', 'x\ty', '\xe9'];
const CONNECTIONS = ['Connection: close', 'Connection: keep-alive', 'Connection: X-A, TE'];
const TOKEN = "abcXYZ019-_.!#$%&'*+^`|~";
const VALUE = 'abc XYZ,;="/\t\xe9\xff()019:';
const DATA = 'hello world {"model":"m"}\r\n0\r\n\r\nGET / HTTP/1.1\r\n\0\xff';
/** Parts of heads, for heads that are random sequences of them. */
const WORDS = [
  ...[
    '\r\n',
    '\r\n',
    '\r\n\r\n',
    '\r\n\r\n',
    '\n',
    '\r',
    ' ',
    ' ',
    '\t',
    '\0',
    '\xff',
    ':',
    ': ',
    ';',
    ',',
    '"',
  ],
  ...['GET', 'POST', 'HEAD', '/', '*', 'http://g', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/', '200', '204', 'OK'],
  ...[
    'X',
    'Host',
    'Host: g',
    'Connection',
    'close',
    'keep-alive',
    'Upgrade',
    'Content-Length',
    'Content-Length: 5',
  ],
  ...[
    'Transfer-Encoding',
    'Transfer-Encoding: chunked',
    'chunked',
    'a=b',
    '5',
    '0',
    '5\r\nhello\r\n',
    '0\r\n\r\n',
  ],
];
const MAX_LENGTH = 8192;

/** Generates the input of an index. It depends on seed and index alone. */
export function generateInput(seed: number, index: number): Input {
  const random = new Random(seed, index);
  const side: Side = random.chance(60) ? 'request' : 'response';
  let text = '';
  const count = random.chance(60) ? 1 : 2 + random.below(2);
  for (let i = 0; i < count; i++) text += generateMessage(random, side);
  if (random.chance(10))
    text += random.chance(50) ? random.text(SPECIAL_BYTES, 8) : 'GET / HTTP/1.1\r\nHost: g\r\n\r\n';
  if (random.chance(30)) text = mutate(random, text);
  if (random.chance(10)) text = text.slice(0, random.below(text.length + 1));
  const bytes = Buffer.from(text.slice(0, MAX_LENGTH), 'latin1');
  const methods = Array.from({ length: 3 }, () => random.pick(['POST', 'POST', 'GET', 'HEAD']));
  return { side, bytes, methods, cuts: generateCuts(random, bytes) };
}

function generateMessage(random: Random, side: Side): string {
  const kind = random.below(100);
  if (kind < 15) return random.pick(side === 'request' ? REAL_REQUESTS : REAL_RESPONSES);
  if (kind < 20) return generateWords(random);
  return compose(random, side);
}

function generateWords(random: Random): string {
  let text = '';
  for (let left = random.below(30); left > 0; left--) text += random.pick(WORDS);
  return text;
}

/** Places of a trick in a message. */
type Place =
  | 'start'
  | 'field'
  | 'added'
  | 'replaced'
  | 'length'
  | 'line_end'
  | 'size'
  | 'data_end'
  | 'last_chunk';
const HEAD_PLACES: readonly Place[] = ['start', 'field', 'added', 'replaced', 'length', 'line_end'];
const CHUNK_PLACES: readonly Place[] = ['size', 'data_end', 'last_chunk'];

/** A message by the grammar, with up to two tricks in it. */
function compose(random: Random, side: Side): string {
  const framing = random.pick(['chunked', 'chunked', 'length', 'length', 'none'] as const);
  const places = pickPlaces(random, framing === 'chunked');
  const lines = [
    side === 'request'
      ? composeRequestLine(random, places.has('start'))
      : composeStatusLine(random, places.has('start')),
  ];
  if (side === 'request' && !random.chance(3)) lines.push(`Host: ${random.pick(HOSTS)}`);
  for (let left = random.chance(2) ? random.below(80) : random.below(5); left > 0; left--) {
    lines.push(composeFieldLine(random));
  }
  if (random.chance(20)) lines.push(random.pick(CONNECTIONS));
  if (places.has('field')) lines.push(random.pick(FIELD_LINES));
  const data = composeData(random);
  if (framing === 'chunked')
    lines.push(random.pick(['Transfer-Encoding: chunked', 'transfer-encoding:Chunked']));
  if (framing === 'length')
    lines.push(`Content-Length: ${composeLength(random, data, places.has('length'))}`);
  if (places.has('added')) lines.push(random.pick(FRAMING_LINES));
  if (places.has('replaced')) lines.splice(lines.length - 1, 1, random.pick(FRAMING_LINES));
  if (random.chance(30)) shuffleFields(random, lines);
  const head = joinLines(random, lines, places.has('line_end'));
  if (framing === 'chunked') return head + composeChunks(random, data, places);
  return framing === 'length' || (side === 'response' && random.chance(50)) ? head + data : head;
}

function pickPlaces(random: Random, isChunked: boolean): ReadonlySet<Place> {
  const places = new Set<Place>();
  const count = random.chance(60) ? 0 : random.chance(80) ? 1 : 2;
  for (let left = count; left > 0; left--) {
    places.add(random.pick(isChunked && random.chance(50) ? CHUNK_PLACES : HEAD_PLACES));
  }
  return places;
}

function composeRequestLine(random: Random, isTricked: boolean): string {
  if (isTricked) return random.pick(REQUEST_LINES);
  const target = random.chance(20)
    ? `/${random.text(`${TOKEN}/?#[]{}"<>\\@:=;,`, 12)}`
    : random.pick(TARGETS);
  const line = `${random.pick(METHODS)} ${target} HTTP/1.${random.chance(90) ? 1 : 0}`;
  return random.chance(3) ? `\r\n${line}` : line;
}

function composeStatusLine(random: Random, isTricked: boolean): string {
  if (isTricked) return random.pick(STATUS_LINES);
  return `HTTP/1.${random.chance(90) ? 1 : 0} ${random.pick(STATUSES)} ${random.pick(REASONS)}`;
}

function composeFieldLine(random: Random): string {
  const blanks = random.pick(['', ' ', ' ', '\t ']);
  return `${random.pick(TOKEN)}${random.text(TOKEN, 8)}:${blanks}${random.text(VALUE, 20)}`;
}

function composeData(random: Random): string {
  if (random.chance(50)) return 'hello';
  return random.text(DATA, 40).repeat(random.chance(95) ? 1 : random.below(50));
}

function composeLength(random: Random, data: string, isTricked: boolean): string {
  const length = isTricked ? random.below(99) : data.length;
  return random.chance(95) ? String(length) : `0${random.chance(50) ? '0' : ''}${length}`;
}

function composeChunks(random: Random, data: string, places: ReadonlySet<Place>): string {
  const chunks: string[] = [];
  for (let at = 0; at < data.length; ) {
    const size = random.chance(30) ? 1 : 1 + random.below(data.length - at);
    chunks.push(`${size.toString(16)}${composeExtension(random)}\r\n${data.slice(at, at + size)}`);
    at += size;
  }
  if (places.has('size'))
    chunks.splice(random.below(chunks.length + 1), 0, `${random.pick(SIZE_LINES)}\r\nhello`);
  const trickedChunk = places.has('data_end') ? random.below(chunks.length) : -1;
  let text = '';
  for (const [index, chunk] of chunks.entries()) {
    text += chunk + (index === trickedChunk ? random.pick(DATA_ENDS) : '\r\n');
  }
  return text + (places.has('last_chunk') ? random.pick(LAST_CHUNKS) : composeLastChunk(random));
}

function composeLastChunk(random: Random): string {
  if (random.chance(70)) return '0\r\n\r\n';
  let section = '';
  for (let left = random.below(4); left > 0; left--) section += `${composeFieldLine(random)}\r\n`;
  return `0${composeExtension(random)}\r\n${section}\r\n`;
}

function composeExtension(random: Random): string {
  if (!random.chance(10)) return '';
  const name = `;${random.pick(TOKEN)}${random.text(TOKEN, 4)}`;
  if (random.chance(30)) return name;
  const value = random.chance(50) ? `"${random.text('ab\t;=,\\\\""\xe9', 5)}"` : random.text(TOKEN, 5);
  return `${name}=${value}`;
}

function shuffleFields(random: Random, lines: string[]): void {
  const from = 1 + random.below(lines.length);
  const [line] = lines.splice(from, 1);
  if (line !== undefined) lines.splice(1 + random.below(lines.length), 0, line);
}

function joinLines(random: Random, lines: readonly string[], isTricked: boolean): string {
  const trickedLine = isTricked ? random.below(lines.length + 1) : -1;
  let text = '';
  for (let i = 0; i <= lines.length; i++) {
    text += (lines[i] ?? '') + (i === trickedLine ? random.pick(LINE_ENDS) : '\r\n');
  }
  return text;
}

function generateCuts(random: Random, bytes: Buffer): readonly number[] {
  const way = random.below(10);
  if (way < 2) return [bytes.length];
  if (way === 2) return Array.from({ length: bytes.length }, (_, index) => index + 1);
  const cuts = new Set<number>();
  for (let left = 1 + random.below(6); left > 0; left--) cuts.add(generateCut(random, bytes));
  return [...cuts].sort((one, other) => one - other).concat(bytes.length);
}

/** Every other cut is in or beside a line end, where parsing is hardest. */
function generateCut(random: Random, bytes: Buffer): number {
  const at = random.below(bytes.length + 1);
  if (random.chance(50)) return at;
  const lineEnd = bytes.indexOf('\r', at);
  return lineEnd === -1 ? at : Math.min(bytes.length, lineEnd + random.below(3));
}

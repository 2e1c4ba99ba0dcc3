import { mutate } from './mutate.ts';
import { Random } from './random.ts';
import type { Input, Side } from './read-message.ts';
import { REAL_REQUESTS, REAL_RESPONSES } from './real-messages.ts';
import { FIELD_LINES, LINE_ENDS, SPECIAL_BYTES } from './tricks/field-lines.ts';
import { DATA_ENDS, FRAMING_LINES, LAST_CHUNKS, SIZE_LINES } from './tricks/framing.ts';
import { REQUEST_LINES, STATUS_LINES } from './tricks/start-lines.ts';

const METHODS = [
  'GET',
  'POST',
  'POST',
  'POST',
  'HEAD',
  'PUT',
  'DELETE',
  'OPTIONS',
  'PATCH',
  'TRACE',
  'M-SEARCH',
];
const TARGETS = ['/', '/v1/chat/completions', '/v1/models?a=b&c', '/a%2fb;c/../d', '//x', 'http://g/x', '*'];
const HOSTS = ['g', 'gateway:8080', '127.0.0.1', '[::1]:80', ''];
const STATUSES = ['100', '103', '200', '200', '200', '200', '204', '304', '404', '500', '503', '999'];
const REASONS = ['OK', '', 'Not Found', 'x\ty', '\xe9'];
const TOKEN = "abcXYZ019-_.!#$%&'*+^`|~";
const VALUE = 'abc XYZ,;="/\t\xe9\xff()019:';
const DATA = 'hello world {"model":"m"}\r\n0\r\n\r\nGET / HTTP/1.1\r\n\0\xff';
/** What heads are made of, for heads that are made of nothing else. */
const WORDS = [
  'GET',
  'POST',
  'HEAD',
  ' ',
  ' ',
  '/',
  '*',
  'http://g',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/',
  '200',
  '204',
  'OK',
  '\r\n',
  '\r\n',
  '\r\n\r\n',
  '\r\n\r\n',
  '\n',
  '\r',
  ':',
  ': ',
  'Host',
  'Host: g',
  'X',
  'Content-Length',
  'Content-Length: 5',
  'Transfer-Encoding',
  'Transfer-Encoding: chunked',
  'chunked',
  'Connection',
  'close',
  'keep-alive',
  'Upgrade',
  '5',
  '0',
  '5\r\nhello\r\n',
  '0\r\n\r\n',
  'hello',
  ';',
  'a=b',
  '"',
  ',',
  '\t',
  '\0',
  '\xff',
] as const;
const MAX_LENGTH = 8192;

/** Makes the input of an index: the same for the same seed, whatever was made before. */
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

/** A message by the grammar, with a trick in it here and there. */
function compose(random: Random, side: Side): string {
  // Each place has its own chance; together they leave a good half of the messages sound.
  const isTricked = () => random.chance(5);
  const lines = [
    side === 'request' ? composeRequestLine(random, isTricked()) : composeStatusLine(random, isTricked()),
  ];
  if (side === 'request' && !random.chance(3)) lines.push(`Host: ${random.pick(HOSTS)}`);
  for (let left = random.chance(2) ? random.below(80) : random.below(5); left > 0; left--) {
    lines.push(composeFieldLine(random));
  }
  if (isTricked()) lines.push(random.pick(FIELD_LINES));
  const framing = random.below(4);
  const data = composeData(random);
  const body = framing === 0 ? composeChunks(random, data, isTricked) : data;
  if (framing === 0)
    lines.push(random.chance(50) ? 'Transfer-Encoding: chunked' : 'transfer-encoding: Chunked');
  if (framing === 1 || framing === 2)
    lines.push(`Content-Length: ${composeLength(random, data, isTricked())}`);
  if (isTricked()) lines.push(random.pick(FRAMING_LINES));
  if (isTricked()) lines.splice(1 + random.below(lines.length), 1, random.pick(FRAMING_LINES));
  if (random.chance(30)) shuffleFields(random, lines);
  const hasBody = framing < 3 || (side === 'response' && random.chance(50));
  return joinLines(random, lines, isTricked()) + (hasBody ? body : '');
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
  if (random.chance(10))
    return random.pick(['Connection: close', 'Connection: keep-alive', 'Connection: X-A, TE']);
  return `${random.pick(TOKEN)}${random.text(TOKEN, 8)}:${random.pick(['', ' ', '\t '])}${random.text(VALUE, 20)}`;
}

function composeData(random: Random): string {
  if (random.chance(50)) return 'hello';
  return random.text(DATA, 40).repeat(random.chance(95) ? 1 : random.below(50));
}

function composeLength(random: Random, data: string, isTricked: boolean): string {
  const length = isTricked ? random.below(99) : data.length;
  return random.chance(95) ? String(length) : `0${random.chance(50) ? '0' : ''}${length}`;
}

function composeChunks(random: Random, data: string, isTricked: () => boolean): string {
  let text = '';
  let at = 0;
  while (at < data.length) {
    const size = random.chance(30) ? 1 : 1 + random.below(data.length - at);
    const end = isTricked() ? random.pick(DATA_ENDS) : '\r\n';
    text += `${size.toString(16)}${composeExtension(random)}\r\n${data.slice(at, at + size)}${end}`;
    at += size;
  }
  if (isTricked() || random.chance(10)) text += `${random.pick(SIZE_LINES)}\r\nhello\r\n`;
  return text + (random.chance(80) ? '0\r\n\r\n' : random.pick(LAST_CHUNKS));
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

/** Line ends are where it is hard: every other cut is in or beside one. */
function generateCut(random: Random, bytes: Buffer): number {
  const at = random.below(bytes.length + 1);
  if (random.chance(50)) return at;
  const lineEnd = bytes.indexOf('\r', at);
  return lineEnd === -1 ? at : Math.min(bytes.length, lineEnd + random.below(3));
}

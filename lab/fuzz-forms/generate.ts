import { Random } from '../fuzz-http/random.ts';
import type { Form } from './form.ts';

const BOUNDARIES = ['boundary', '----WebKitFormBoundary7MA4', 'a', '-', "a'b_.+", 'y', 'boundary-x'];
/** Those that must be quoted. */
const QUOTED_BOUNDARIES = ['a b:c', 'a=b', '----=_Part_0', 'a/b?c', 'a;b', '(a),b', 'a '];
const TYPES = [
  ...['B; charset=utf-8', 'charset=utf-7; B', 'charset=utf-16; B', 'q="; boundary=y; z="; B', 'B;', 'B; a=b'],
  ...["boundary*=utf-8''y; B", 'B; boundary*0=y', 'boundary*0=a; boundary*1=b; B', 'B; boundary=y', 'B, B'],
  ...['boundary=y; B', '\tB', 'B ', 'BOUNDARY=y; B', 'a="\\"; B; boundary=y; b="', 'boundary ="y"; B', '; B'],
];
const KINDS = [
  'multipart/form-data; ',
  'Multipart/Form-Data; ',
  'multipart/form-data ;',
  'multipart/mixed; ',
];

const NAMES = [
  'model',
  'model',
  'prompt',
  'prompt',
  'file',
  'Model',
  'model[]',
  'x',
  'stream',
  '',
  'é',
  'mod',
];
const FILE_NAMES = [
  ...['a.wav', 'a b.wav', 'C:\\audio\\a.wav', 'é.wav', '\xff.wav', 'a=b', '', 'a;b', 'model', '%22a%22', '='],
  ...['\\', "a'b", '; name=model', ' name=model; ', '<a>', 'x\\\\y', '\x85', '\xa0a', 'a name=b'],
];
const VALUES = [
  ...['whisper', 'a', 'b', '', 'aé😀', '\r\n--boundar', '\r\n--', '--boundary', '\r\n\r\n', '\r', '\n', '--'],
  ...[
    'Content-Disposition: form-data; name="model"',
    'x'.repeat(200),
    '\r\n--boundary',
    '+AG0-',
    '=6D',
    '\0',
  ],
];
const LINES = [
  ...['Content-Type: text/plain', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 1', 'X-A: b'],
  ...['Content-Type: text/plain; charset=ISO-8859-1', 'Content-Transfer-Encoding: binary', 'Content-Type: a'],
  ...['content-type:application/octet-stream', 'X-B: Content-Disposition: form-data; name="model"'],
];
const HOSTILE_LINES = [
  ...[
    'Content-Type: text/plain; charset=utf-7',
    'Content-Transfer-Encoding: base64',
    ' name="model"',
    'X',
    ':',
  ],
  ...[
    'Content-Disposition: form-data; name="model"',
    'content-disposition: form-data; name=b',
    'X\0: y',
    'X: \0',
  ],
  ...['X: y\nContent-Disposition: form-data; name="model"', 'Content-Disposition : form-data; name="model"'],
  ...[
    'X: y\rContent-Disposition: form-data; name="model"',
    '\tname=model',
    'Content-Type: a; charset=utf-16',
  ],
];
const KEYS = [
  ...[
    'name',
    'name',
    'name',
    'filename',
    'filename*',
    'name*',
    'name*0',
    'name*1',
    'name*0*',
    'NAME',
    'a',
    'b',
  ],
  ...['filename*0', ' name', 'name ', '"name"', 'na me', '', 'xname', 'filename '],
];
const SCRAPS = [
  ...[
    '"',
    '\\',
    ';',
    '=',
    ' ',
    '\t',
    "'",
    '*',
    '%22',
    'model',
    'name=',
    'name=model',
    "utf-8''",
    'x',
    '+AG0-',
  ],
  ...[
    '\\"',
    '<',
    '>',
    'é',
    '\xff',
    '\x85',
    '\xa0',
    ',',
    '(',
    ')',
    ':',
    '?',
    '\x0b',
    '\x7f',
    '; name="model"',
  ],
];
const BODY_SCRAPS = [
  ...[
    '\r\n',
    '\n',
    '\r',
    '--',
    '-',
    '"',
    '\\',
    ';',
    '\0',
    ' ',
    '\t',
    '\r\n--boundary',
    '\r\n--boundary--',
    '=',
  ],
  ...[
    '\r\n--boundary\r\n',
    'name="model"',
    'Content-Disposition: form-data; name="model"\r\n\r\n',
    'é',
    '\xff',
  ],
];
const SEPARATORS = [';', ' ; ', ';;', ';\t', ',', ' ', '; '];
const DISPOSITIONS = ['Form-Data', 'attachment', '', 'form-data ', 'form-data,', 'form-data; a', 'inline'];
const PREAMBLES = ['\r\n', '\n', 'x\r\n', '--\r\n', ' ', '--boundary--\r\n', 'x', '\r\n\r\n'];
const EPILOGUES = ['\r\n\r\n', '\n', ' ', '\r', 'x', '\r\nx', '-', '\r\n--boundary\r\n', '--\r\n'];
const PADDINGS = [' ', '\t', '-', '--', '\n', '\r', '  \r\n'];

/** Makes the form of an index: most are as clients write them, some with one trick, some with many. */
export function generateForm(seed: number, index: number): Form {
  const random = new Random(seed, index);
  /** In percent: how likely each choice is to be hostile. */
  const hostility = random.pick([0, 0, 0, 3, 3, 10, 25]);
  const isQuoted = random.chance(15);
  const boundary = random.pick(isQuoted && random.chance(60) ? QUOTED_BOUNDARIES : BOUNDARIES);
  const contentType = toType(random, isQuoted ? `"${boundary}"` : boundary, hostility);
  const text = mutate(random, toBody(random, boundary, hostility), hostility);
  return { contentType, pieces: cut(random, Buffer.from(text, 'latin1')) };
}

function toType(random: Random, boundary: string, hostility: number): string {
  const parameter = `boundary=${boundary}`;
  const kind = random.chance(hostility) ? random.pick(KINDS) : 'multipart/form-data; ';
  if (!random.chance(2 * hostility)) return random.chance(10) ? kind.trimEnd() + parameter : kind + parameter;
  const type = random.pick(TYPES).replaceAll('B', parameter);
  return kind + (random.chance(30) ? splice(random, type, random.pick(SCRAPS)) : type);
}

function toBody(random: Random, boundary: string, hostility: number): string {
  const isHostile = () => random.chance(hostility);
  let body = isHostile() ? random.pick(PREAMBLES) : '';
  let hasModel = false;
  for (let left = isHostile() ? 0 : 1 + random.below(4); left > 0; left--) {
    let name = random.pick(NAMES);
    if (name === 'model' && hasModel && !isHostile()) name = 'x';
    hasModel ||= name === 'model';
    const padding = isHostile() ? random.pick(PADDINGS) : '';
    body += `--${boundary}${padding}\r\n${toHead(random, name, hostility)}\r\n\r\n${toValue(random)}\r\n`;
  }
  const end = isHostile() ? random.pick(EPILOGUES) : random.chance(90) ? '\r\n' : '';
  const more = isHostile()
    ? `--${boundary}\r\n${toHead(random, 'model', 0)}\r\n\r\nb\r\n--${boundary}--`
    : '';
  return `${body}--${boundary}--${end}${more}`;
}

function toValue(random: Random): string {
  const value = random.chance(10) ? random.pick(VALUES) + random.pick(VALUES) : random.pick(VALUES);
  return Buffer.from(value).toString('latin1');
}

function toHead(random: Random, name: string, hostility: number): string {
  const lines = [`Content-Disposition: ${toDisposition(random, name, hostility)}`];
  while (random.chance(25)) lines.splice(random.below(2), 0, random.pick(LINES));
  if (random.chance(hostility)) lines.splice(random.below(lines.length + 1), 0, random.pick(HOSTILE_LINES));
  return lines.join('\r\n');
}

function toDisposition(random: Random, name: string, hostility: number): string {
  const type = random.chance(hostility) ? random.pick(DISPOSITIONS) : 'form-data';
  if (random.chance(2 * hostility)) return type + toParameters(random);
  const isToken = /^[a-zA-Z]+$/.test(name) && random.chance(20);
  const pieces = [type, `name=${isToken ? name : `"${Buffer.from(name).toString('latin1')}"`}`];
  if (random.chance(name === 'model' ? hostility : 30)) {
    pieces.push(`filename="${random.chance(70) ? 'a.wav' : random.pick(FILE_NAMES)}"`);
    if (random.chance(10))
      pieces.push(`filename*=${random.pick(["utf-8''%C3%A9", "UTF-8''a", "x''a", 'a'])}`);
  }
  if (random.chance(hostility)) pieces.push(`${random.pick(KEYS)}="${random.pick(NAMES)}"`);
  return pieces.join(random.chance(hostility) ? random.pick(SEPARATORS) : '; ');
}

/** Parameters of any kind. Some of them put a name inside of quotation marks. */
function toParameters(random: Random): string {
  let text = '';
  for (let left = 1 + random.below(4); left > 0; left--) {
    const key = random.pick(KEYS);
    let value = random.pick(NAMES);
    for (let scraps = random.below(4); scraps > 0; scraps--)
      value = splice(random, value, random.pick(SCRAPS));
    const quote = random.chance(70) ? '"' : '';
    text += `${random.chance(90) ? '; ' : random.pick(SEPARATORS)}${key}=${quote}${value}${quote}`;
  }
  return text;
}

function splice(random: Random, text: string, scrap: string): string {
  const at = random.below(text.length + 1);
  return text.slice(0, at) + scrap + text.slice(at);
}

function mutate(random: Random, body: string, hostility: number): string {
  let text = body;
  while (random.chance(hostility)) {
    const at = random.below(text.length + 1);
    const scrap = random.chance(70) ? random.pick(BODY_SCRAPS) : '';
    text = text.slice(0, at) + scrap + text.slice(at + random.below(3));
  }
  return text;
}

function cut(random: Random, bytes: Buffer): Buffer[] {
  if (random.chance(3)) return Array.from(bytes, (byte) => Buffer.from([byte]));
  const cuts = Array.from({ length: random.below(5) }, () => random.below(bytes.length + 1));
  const edges = [0, ...cuts.sort((one, other) => one - other), bytes.length];
  return edges
    .slice(1)
    .map((edge, at) => bytes.subarray(edges[at], edge))
    .filter((piece) => piece.length > 0);
}

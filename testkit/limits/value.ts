import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { parseConfig } from '#config';
import { nameOf } from '../../src/config/schema/keys.ts';
import { schemaAt } from '../../src/config/schema.ts';
import { ROOT } from '../programs/results.ts';
import { type Limit, type Source, toSourceName } from './limit.ts';

const DEFAULTS = parseConfig('replicas: [{ name: a, url: "http://a:1" }]', {
  path: 'gateway.yaml',
  env: {},
});
const ARITHMETIC = /^(?:Math\.ceil|[\d_.\s*+()e/-])+$/;

/** The value of a limit by default: of a key from the schema, of a constant from the text of its file. */
export function readValue(source: Source): number {
  const value =
    'key' in source ? readKey(source.defaultKey ?? source.key) : readConstant(source.file, source.constant);
  if (!Number.isFinite(value)) throw new Error(`${toSourceName(source)} is not a number`);
  return value;
}

function readKey(key: string): number {
  let value: unknown = DEFAULTS;
  const path = key.split('.');
  for (const [index, part] of path.entries()) {
    const schema = schemaAt(path.slice(0, index + 1));
    if (schema !== undefined) value = (value as Readonly<Record<string, unknown>>)[nameOf(part, schema)];
  }
  return Number(value ?? Number.NaN);
}

function readConstant(file: string, constant: string): number {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const written = new RegExp(`const ${constant} = ([^;]+);`).exec(text)?.[1] ?? '';
  return ARITHMETIC.test(written) ? Number(runInNewContext(written)) : Number.NaN;
}

/** The value for people: `32 MiB`, `15 s`, `35 d`, `4,096`. */
export function printValue({ source, unit = unitOf(source) }: Limit): string {
  const value = readValue(source);
  switch (unit) {
    case 'bytes':
      return printBytes(value);
    case 'ms':
      return printSeconds(value / 1000);
    case 's':
      return printSeconds(value);
    case 'ns':
      return printSeconds(value / 1e9);
    case 'characters':
      return `${value.toLocaleString('en-US')} characters`;
    case 'number':
      return value.toLocaleString('en-US');
  }
}

function unitOf(source: Source): NonNullable<Limit['unit']> {
  const name = toSourceName(source);
  if (/BYTES$|^limits\.(?:body|buffered|before_model|headers|event)$/.test(name)) return 'bytes';
  if (/CHARS$/.test(name)) return 'characters';
  return /_MS$|^timeouts\./.test(name) ? 'ms' : 'number';
}

function printBytes(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB'];
  let value = bytes;
  let index = 0;
  for (; value % 1024 === 0 && index < units.length - 1; index++) value /= 1024;
  return `${value.toLocaleString('en-US')} ${units[index]}`;
}

function printSeconds(seconds: number): string {
  if (seconds > 86_400 && seconds % 86_400 === 0) return `${seconds / 86_400} d`;
  if (seconds % 3600 === 0) return `${seconds / 3600} h`;
  if (seconds % 60 === 0) return `${seconds / 60} min`;
  return seconds < 1 ? `${seconds * 1000} ms` : `${seconds} s`;
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse, parseDocument, visit } from 'yaml';
import { ConfigError, parseConfig, printConfig } from '#config';
import { toConfigJsonSchema } from '#testkit/config-json-schema.ts';
import { ROOT } from '#testkit/programs/results.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must, mustEqual } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';

const ORIGIN = { path: '/etc/spangate/gateway.yaml', env: { NAME: 'value', EMPTY: '', HOME: '/root' } };
const MINIMAL = 'replicas:\n  - name: a\n    url: http://127.0.0.1:8000\n    models: [m]\n';

const isValidBySchema = new Ajv2020({ strict: false, validateFormats: false }).compile(toConfigJsonSchema());
const REFERENCE = readExamples();
const KEYS = [...new Set(REFERENCE.flatMap((text) => text.match(/[a-z_]+(?=:)/g) ?? []))];
const VALUES = [
  ...['0', '1', '-1', '5s', '0s', '99999h', '1MiB', '9999GiB', 'true', 'null', '""', '[]', '{}'],
  ...[
    '1e400',
    '.nan',
    '.inf',
    '0x10',
    '!!binary aGk=',
    '&a [*a]',
    '*a',
    '!x y',
    '|\n  text',
    '"\\u0000"',
    'http://[::1]:80',
  ],
  ...['127.0.0.1:0', ':99999', '[m, m]', '"x"', '2026-11-22', '<<: *a'],
  ...['{NAME}', '{MISSING}', '{file:/none}', '{'].map((reference) => `"$${reference}"`),
];

/** The loader of the configuration. */
export const CONFIG: FuzzTarget = {
  name: 'config',
  reads: 'the configuration file',
  oracle:
    'nothing but a ConfigError, with lines that the file has; nothing is accepted that the published JSON Schema refuses; what is accepted is the same when it is printed and read again',
  variants: 1,
  ciInputs: 1_000,
  generate: (random) => Buffer.from(configText(random)),
  check({ bytes }) {
    const text = bytes.toString();
    const lineCount = text.split(/\r\n|\r|\n/).length;
    const file = read(text);
    if (file instanceof ConfigError) {
      must(file.problems.length > 0, 'an error without a problem');
      for (const { line } of file.problems)
        must(line >= 1 && line <= lineCount + 1, `there is no line ${line}`);
      return false;
    }
    if (!text.includes('$'))
      must(
        isValidBySchema(toData(text)),
        `the schema refuses: ${JSON.stringify(isValidBySchema.errors?.[0])}`,
      );
    const printed = printConfig(file);
    mustEqual(
      'what is printed and read again',
      printConfig(parseConfig(escapeReferences(printed), ORIGIN)),
      printed,
    );
    return true;
  },
  read: ({ bytes }) => read(bytes.toString()),
};

/** Makes `${` in values literal. In keys it is so already. */
function escapeReferences(text: string): string {
  if (!text.includes('${')) return text;
  const document = parseDocument(text);
  visit(document, {
    Scalar(key, node) {
      if (key !== 'key' && typeof node.value === 'string') node.value = node.value.replaceAll('${', '$$$${');
    },
  });
  return document.toString({ lineWidth: 0 });
}

function read(text: string): ReturnType<typeof parseConfig> | ConfigError {
  try {
    return parseConfig(text, ORIGIN);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

function toData(text: string): unknown {
  return parse(text, { merge: true, logLevel: 'silent' }) ?? {};
}

function configText(random: Random): string {
  const base = random.chance(60) ? MINIMAL : random.pick(REFERENCE);
  const lines = base.split('\n');
  for (let left = random.below(4); left > 0; left--) {
    const at = random.below(lines.length + 1);
    const line = lines[at] ?? '';
    const [, indent = '', key = random.pick(KEYS)] = /^(\s*(?:- )?)([a-z_]+):/.exec(line) ?? [];
    const value = random.chance(85) ? random.pick(VALUES) : jsonText(random, KEYS, 2);
    if (random.chance(60)) lines[at] = `${indent}${key}: ${value}`;
    else lines.splice(at, 0, `${indent.replace('-', ' ')}${random.pick(KEYS)}: ${value}`);
  }
  return lines.join('\n');
}

/** The examples of the documents, without comments. */
function readExamples(): string[] {
  const text = [
    'README.md',
    'docs/configuration.md',
    'docs/fleet.md',
    'docs/api-keys.md',
    'docs/security.md',
    'docs/security.md',
    'docs/routing.md',
  ]
    .map((path) => readFileSync(join(ROOT, path), 'utf8'))
    .join('\n');
  const blocks = [...text.matchAll(/```yaml\n(.*?)```/gs)].map(([, block = '']) => block);
  const whole = blocks.filter((block) => /^replicas:/m.test(block));
  return [
    ...whole,
    ...blocks.filter((block) => !/^replicas:/m.test(block)).map((block) => `${block}\n${MINIMAL}`),
  ];
}

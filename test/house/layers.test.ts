import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LAYERS } from './layers.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The ways one module can name another; a rule that sees only `import … from` would be no rule. */
const IMPORT_FORMS: readonly { form: string; write: (specifier: string) => string }[] = [
  { form: 'a named import', write: (specifier) => `import { thing } from '${specifier}';` },
  { form: 'a type import', write: (specifier) => `import type { Thing } from '${specifier}';` },
  { form: 'a namespace import', write: (specifier) => `import * as things from '${specifier}';` },
  { form: 'an import for effects', write: (specifier) => `import '${specifier}';` },
  { form: 'a re-export', write: (specifier) => `export { thing } from '${specifier}';` },
  { form: 'a re-export of everything', write: (specifier) => `export * from '${specifier}';` },
  { form: 'a dynamic import', write: (specifier) => `export const things = await import('${specifier}');` },
];

const TYPE_IMPORTS = [
  `import type { RequestRecord } from '#otel/encode/request-record.ts';`,
  `export type { Config } from '../config/config.ts';`,
];

const VALUE_IMPORTS = [
  `import { toConfig } from '../config/config.ts';`,
  `import { type Config } from '../config/config.ts';`,
  `import * as config from '../config/config.ts';`,
  `import '#otel/encode/request-record.ts';`,
  `export { toConfig } from '../config/config.ts';`,
  `export * from '../config/config.ts';`,
  `export const config = await import('../config/config.ts');`,
];

/** A use of process's global in each way biome knows of. */
const PROCESS_USES = ['process.exit(1);', 'export const path = globalThis.process.env.PATH;'];

/** Every file of the case, by name: its lines, one import or statement each. */
const SOURCES = new Map<string, readonly string[]>([
  ...LAYERS.map(({ file, allowed, refused }): [string, string[]] => [
    file,
    [...allowed, ...refused].map((specifier) => `import '${specifier}';`),
  ]),
  ['src/replicas/import-forms.ts', IMPORT_FORMS.map(({ write }) => write('../proxy/forward.ts'))],
  ['src/replicas/common-js.ts', [`export const proxy = require('../proxy/forward.ts');`]],
  ['src/record/shared-types.ts', [...TYPE_IMPORTS, ...VALUE_IMPORTS]],
  ['src/proxy/process-uses.ts', PROCESS_USES],
  ['otel/process-uses.ts', PROCESS_USES],
  ['src/proxy/cycle-one.ts', [`import { two } from './cycle-two.ts';`, 'export const one = () => two;']],
  ['src/proxy/cycle-two.ts', [`import { one } from './cycle-one.ts';`, 'export const two = () => one;']],
]);

interface Diagnostic {
  readonly category: string;
  readonly location: { readonly path: string; readonly start: { readonly line: number } };
}

/** biome exits 1 when it finds something, which is what most of this file wants: only its output counts. */
function lint(folder: string): Promise<readonly Diagnostic[]> {
  const biome = join(ROOT, 'node_modules/.bin/biome');
  const settings = { cwd: folder, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((resolve, reject) => {
    execFile(
      biome,
      ['lint', '--reporter=json', '--max-diagnostics=none', '.'],
      settings,
      (error, stdout, stderr) => {
        if (stdout.startsWith('{')) resolve(JSON.parse(stdout).diagnostics);
        else reject(new Error(`biome did not run: ${stderr}`, { cause: error }));
      },
    );
  });
}

describe('the layers', () => {
  let folder: string;
  /** Rule and place of each finding, as `lint/style/noRestrictedImports src/main.ts:1`. */
  let findings: ReadonlySet<string>;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spangate-layers-'));
    for (const file of ['biome.json', 'scripts/types-only.grit', '.gitignore', 'package.json'])
      await cp(join(ROOT, file), join(folder, file));
    for (const [file, lines] of SOURCES) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), `${lines.join('\n')}\n`);
    }
    const diagnostics = await lint(folder);
    findings = new Set(
      diagnostics.map(({ category, location }) => `${category} ${location.path}:${location.start.line}`),
    );
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  const isRefused = (file: string, line: number, rule = 'lint/style/noRestrictedImports') =>
    findings.has(`${rule} ${file}:${line}`);

  test.each(LAYERS)('$file may import what its layer may, and no more', ({ file, allowed, refused }) => {
    const reported = [...allowed, ...refused].filter((_, index) => isRefused(file, index + 1));
    expect(reported).toEqual(refused);
  });

  test.each(IMPORT_FORMS.map(({ form }, index) => ({ form, line: index + 1 })))(
    '$form is seen',
    ({ line }) => {
      expect(isRefused('src/replicas/import-forms.ts', line)).toBe(true);
    },
  );

  test('require() is refused whatever it names', () => {
    expect(isRefused('src/replicas/common-js.ts', 1, 'lint/style/noCommonJs')).toBe(true);
  });

  test.each(['src/proxy/process-uses.ts', 'otel/process-uses.ts'])(
    'the global process is out of reach of %s',
    (file) => {
      const rule = 'lint/correctness/noProcessGlobal';
      expect(PROCESS_USES.map((_, index) => isRefused(file, index + 1, rule))).toEqual([true, true]);
    },
  );

  test('two modules that import each other are reported', () => {
    const rule = 'lint/suspicious/noImportCycles';
    expect([
      isRefused('src/proxy/cycle-one.ts', 1, rule),
      isRefused('src/proxy/cycle-two.ts', 1, rule),
    ]).toEqual([true, true]);
  });

  test('the modules that layers share for their types give them nothing else', () => {
    const isReported = (line: number) => isRefused('src/record/shared-types.ts', line, 'plugin');
    const reported = [...TYPE_IMPORTS, ...VALUE_IMPORTS].filter((_, index) => isReported(index + 1));
    expect(reported).toEqual(VALUE_IMPORTS);
  });
});

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import layers, { ROOMS } from '../../layers.config.ts';

const ROOT = join(import.meta.dirname, '../..');
const { imports: DOORS } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
  readonly imports: Readonly<Record<string, string>>;
};

interface Import {
  readonly file: string;
  readonly specifier: string;
}

const fileOf = (door: string) => (DOORS[door] ?? '').slice('./'.length);
const folderOf = (door: string) => dirname(fileOf(door));
const nameOf = (door: string) => door.slice(1).replaceAll('/', '-');

/** For each room: imports of every door that it may not use, by its name, and one by its path. */
const VIOLATIONS: Readonly<Record<string, readonly Import[]>> = Object.fromEntries(
  Object.entries(ROOMS).flatMap(([door, may]): readonly [string, readonly Import[]][] => {
    const others = Object.keys(ROOMS).filter((other) => other !== door);
    const toFile = (other: string) => `${folderOf(door)}/to-${nameOf(other)}.ts`;
    const refused = others.filter((other) => !may.includes(other));
    const path = `${folderOf(door)}/by-path.ts`;
    const byPath = others.slice(0, 1).map((other) => ({ file: path, specifier: pathTo(path, other) }));
    return [
      [door, refused.map((other) => ({ file: toFile(other), specifier: other }))],
      [`${door} by path`, byPath],
    ];
  }),
);

/** The relative specifier of a door's file. */
function pathTo(file: string, door: string): string {
  const ups = '../'.repeat(file.split('/').length - 1);
  return `${ups}${fileOf(door)}`;
}

/** What no table of rooms decides, and what each rule about packages refuses. */
const FURTHER: Readonly<Record<string, readonly Import[]>> = {
  testkit: [{ file: 'testkit/to-test.ts', specifier: '../test/probe.ts' }],
  lab: [{ file: 'lab/to-test.ts', specifier: '../test/probe.ts' }],
  test: [{ file: 'test/to-lab.ts', specifier: '../lab/main.ts' }],
  scripts: [{ file: 'scripts/to-lab.ts', specifier: '../lab/main.ts' }],
  page: [{ file: 'src/admin/dashboard/page/probe.js', specifier: '../overview.ts' }],
  main: [{ file: 'src/main.ts', specifier: '#gateway' }],
  'no process': [
    { file: 'src/wire/to-process.ts', specifier: 'node:process' },
    { file: 'otel/disk/to-process.ts', specifier: 'node:process' },
  ],
  'no fleet': [{ file: 'src/gateway/to-fleet.ts', specifier: '#fleet' }],
  'no room': [
    { file: 'src/unplaced.ts', specifier: 'node:fs' },
    { file: 'src/unplaced/probe.ts', specifier: '#json' },
  ],
  '#verdict': [{ file: 'src/verdict/to-timers.ts', specifier: 'node:timers' }],
  '#json': [{ file: 'src/json/to-buffer.ts', specifier: 'node:buffer' }],
  '#wire': [{ file: 'src/wire/to-pino.ts', specifier: 'pino' }],
  '#admin': [{ file: 'src/admin/to-undici.ts', specifier: 'undici' }],
  // A measurement and a script are above everything.
  '#proxy': [
    { file: 'src/proxy/to-lab.ts', specifier: '../../lab/main.ts' },
    { file: 'src/proxy/to-scripts.ts', specifier: '../../scripts/generate/registry.ts' },
  ],
  // A path that only looks like an import of its own room.
  '#fleet by path': [
    { file: 'src/fleet/by-detour.ts', specifier: './redis/../../replicas/control/control.ts' },
  ],
};

/** The forms in which one file can name another. Each must be seen. */
const FORMS: Readonly<Record<string, (specifier: string) => string>> = {
  'a named import': (specifier) => `import { thing } from '${specifier}'; thing();`,
  'an import of a type': (specifier) => `import type { Thing } from '${specifier}'; export type Its = Thing;`,
  'an inline import of a type': (specifier) =>
    `import { type Thing } from '${specifier}'; export type Its = Thing;`,
  'a namespace import': (specifier) => `import * as things from '${specifier}'; things.go();`,
  'an import for effects': (specifier) => `import '${specifier}';`,
  're-export': (specifier) => `export { thing } from '${specifier}';`,
  're-export of a type': (specifier) => `export type { Thing } from '${specifier}';`,
  're-export of everything': (specifier) => `export * from '${specifier}';`,
  'a dynamic import': (specifier) => `export const load = async () => (await import('${specifier}')).thing;`,
  'a type named in place': (specifier) => `export let its: import('${specifier}').Thing;`,
};

const FORM_FILES = Object.entries(FORMS).map(([form, write], index) => ({
  form,
  file: `src/json/form-${index}.ts`,
  text: write('#wire'),
}));

/** Cycles of two and of three files; none of these imports is left when the program runs. */
const CYCLES: readonly (readonly string[])[] = [
  ['src/json/cycle-1.ts', 'src/json/cycle-2.ts'],
  ['src/wire/cycle-1.ts', 'src/wire/cycle-2.ts', 'src/wire/cycle-3.ts'],
];

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string };
  readonly cycle?: readonly { readonly name: string }[];
}

/** Runs dependency-cruiser as `npm run layers` does. It exits 1 when it finds something: only its output counts. */
function checkLayers(folder: string): Promise<readonly Violation[]> {
  const program = join(ROOT, 'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs');
  const config = join(ROOT, 'layers.config.ts');
  const args = [
    program,
    '--config',
    config,
    '--output-type',
    'json',
    '--preserve-symlinks',
    'src',
    'otel',
    'test',
    'testkit',
    'lab',
    'scripts',
  ];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd: folder, maxBuffer: 2 ** 27 }, (error, stdout, stderr) => {
      if (stdout.startsWith('{')) resolve(JSON.parse(stdout).summary.violations);
      else reject(new Error(`dependency-cruiser did not run: ${stderr}`, { cause: error }));
    });
  });
}

describe('the walls', () => {
  let folder: string;
  let violations: readonly Violation[];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spangate-layers-'));
    await copyFile(join(ROOT, 'package.json'), join(folder, 'package.json'));
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const write = async (file: string, text: string) => {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), text);
    };
    const broken = [...Object.values(VIOLATIONS), ...Object.values(FURTHER)].flat();
    // First what is imported, empty; then what imports it.
    for (const door of Object.keys(ROOMS)) await write(fileOf(door), 'export {};\n');
    for (const { file, specifier } of broken)
      if (specifier.startsWith('.')) await write(join(dirname(file), specifier), 'export {};\n');
    for (const { file, specifier } of broken) await write(file, `import '${specifier}';\n`);
    for (const { file, text } of FORM_FILES) await write(file, `${text}\n`);
    for (const files of CYCLES)
      for (const [index, file] of files.entries()) {
        const next = (files[(index + 1) % files.length] ?? '').replace(/.*\//, './');
        await write(file, `import type { Thing } from '${next}';\nexport type Its = Thing;\n`);
      }
    violations = await checkLayers(folder);
  }, 300_000);

  afterAll(() => rm(folder, { recursive: true, force: true }));

  const reportedBy = (rule: string) =>
    violations.filter((violation) => violation.rule.name === rule).map(({ from }) => from);

  test.each(Object.entries(VIOLATIONS))('%s: what breaks the rule is reported', (rule, broken) => {
    expect(reportedBy(rule)).toEqual(expect.arrayContaining(broken.map(({ file }) => file)));
  });

  test.each(Object.entries(FURTHER))('%s: further violations are reported', (rule, broken) => {
    expect(reportedBy(rule)).toEqual(expect.arrayContaining(broken.map(({ file }) => file)));
  });

  test('every rule has a violation here', () => {
    const rules = layers.forbidden.map(({ name }) => name);
    const tried = new Set([...Object.keys(VIOLATIONS), ...Object.keys(FURTHER), 'no cycle']);
    expect(rules.filter((rule) => !tried.has(rule ?? ''))).toEqual([]);
  });

  test.each(FORM_FILES)('$form is seen', ({ file }) => {
    expect(reportedBy('#json')).toContain(file);
  });

  test('files that import each other are reported, even if only for their types', () => {
    const cycles = violations.flatMap(({ rule, cycle = [] }) =>
      rule.name === 'no cycle' ? [cycle.map(({ name }) => name).toSorted()] : [],
    );
    expect(cycles).toEqual(expect.arrayContaining(CYCLES.map((files) => files.toSorted())));
  });

  test('every door is a file, and every room has one', () => {
    // The testkit is a folder of helpers, each with its own name.
    expect(Object.keys(DOORS).toSorted()).toEqual([...Object.keys(ROOMS), '#testkit/*'].toSorted());
    expect(Object.keys(ROOMS).filter((door) => !existsSync(join(ROOT, fileOf(door))))).toEqual([]);
  });

  test('every package that a room names exists', () => {
    const packages = Object.values(ROOMS)
      .flat()
      .filter((name) => !name.startsWith('#') && name !== 'node:');
    expect(packages.filter((name) => !existsSync(join(ROOT, 'node_modules', name)))).toEqual([]);
  });

  test('rooms form floors: none uses a room that uses it', () => {
    const below = (door: string): readonly string[] => {
      const direct = (ROOMS[door] ?? []).filter((name) => name.startsWith('#'));
      return [...direct, ...direct.flatMap(below)];
    };
    expect(Object.keys(ROOMS).filter((door) => below(door).includes(door))).toEqual([]);
  });

  test.each([
    ['the admin API answers when the data plane does not', '#admin', ['#proxy', '#replicas', '#gateway']],
    [
      'a request never reaches what decides which replicas there are',
      '#proxy',
      ['#replicas/control', '#admin'],
    ],
    ['the pool runs in every thread', '#replicas', ['#replicas/control', '#proxy']],
    [
      'the contract of records does no input or output',
      '#otel/record',
      ['#otel/disk', '#otel/export', '#otel/queue'],
    ],
    [
      'what reads records needs no gateway',
      '#records',
      ['#gateway', '#proxy', '#replicas', '#config', '#wire'],
    ],
    ['a simulated replica needs no gateway', '#simulate', ['#gateway', '#proxy', '#json', '#wire']],
    ['a rollout asks a gateway through its admin API', '#rollout', ['#gateway', '#proxy', '#admin']],
  ])('%s', (_, door, refused) => {
    expect(ROOMS[door]?.filter((name) => refused.includes(name))).toEqual([]);
  });

  test('otel/ is a library of its own', () => {
    const used = Object.entries(ROOMS).flatMap(([door, may]) => (door.startsWith('#otel') ? may : []));
    expect(used.filter((name) => name.startsWith('#') && !name.startsWith('#otel'))).toEqual([]);
  });
});

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import layers, { ROOMS } from '../../layers.config.ts';

const ROOT = join(import.meta.dirname, '../..');

/** For each rule: files that break it by one import each, and what they import. */
const VIOLATIONS: Readonly<Record<string, readonly { readonly file: string; readonly specifier: string }[]>> =
  {
    'src/main.ts': [{ file: 'src/main.ts', specifier: './gateway.ts' }],
    'src/commands/': [
      { file: 'src/commands/to-proxy.ts', specifier: '../proxy/handle-request.ts' },
      { file: 'src/commands/to-serving.ts', specifier: '../serving/serving.ts' },
      { file: 'src/commands/to-replicas.ts', specifier: '../replicas/control/registry/registry.ts' },
    ],
    'src/check-connections/': [
      { file: 'src/check-connections/to-proxy.ts', specifier: '../proxy/handle-request.ts' },
    ],
    'src/gateway.ts': [{ file: 'src/gateway.ts', specifier: './serving/serving.ts' }],
    'src/compose-gateway.ts': [{ file: 'src/compose-gateway.ts', specifier: './proxy/handle-request.ts' }],
    'src/composition/': [
      { file: 'src/composition/to-proxy.ts', specifier: '../proxy/handle-request.ts' },
      { file: 'src/composition/to-root.ts', specifier: '../compose-gateway.ts' },
    ],
    'src/reload-config.ts': [{ file: 'src/reload-config.ts', specifier: './serving/serving.ts' }],
    'src/version.ts': [{ file: 'src/version.ts', specifier: './config/config.ts' }],
    'src/embedded.ts': [{ file: 'src/embedded.ts', specifier: './version.ts' }],
    'src/start-error.ts': [{ file: 'src/start-error.ts', specifier: './config/config.ts' }],
    'src/at-most-once-per-minute.ts': [
      { file: 'src/at-most-once-per-minute.ts', specifier: './config/config.ts' },
    ],
    'src/in-turn.ts': [{ file: 'src/in-turn.ts', specifier: './start-error.ts' }],
    'src/repeated-check.ts': [
      { file: 'src/repeated-check.ts', specifier: './certificates/certificate-files.ts' },
    ],
    'src/clients/': [{ file: 'src/clients/to-serving.ts', specifier: '../serving/serving.ts' }],
    'src/client-limits/': [{ file: 'src/client-limits/to-proxy.ts', specifier: '../proxy/exchange.ts' }],
    'src/jwt/': [{ file: 'src/jwt/to-proxy.ts', specifier: '../proxy/exchange.ts' }],
    'src/jwt/verify-jwt.ts': [{ file: 'src/jwt/verify-jwt.ts', specifier: 'undici' }],
    'src/certificates/': [
      { file: 'src/certificates/to-serving.ts', specifier: '../serving/serving.ts' },
      { file: 'src/certificates/to-replicas.ts', specifier: '../replicas/control/registry/registry.ts' },
    ],
    'src/closest-name.ts': [{ file: 'src/closest-name.ts', specifier: './config/config.ts' }],
    'src/admin/': [
      { file: 'src/admin/to-proxy.ts', specifier: '../proxy/handle-request.ts' },
      { file: 'src/admin/to-gateway.ts', specifier: '../gateway.ts' },
      { file: 'src/admin/routes/to-export.ts', specifier: '#otel/export/otlp-exporter.ts' },
    ],
    'src/admin/dashboard/page/': [{ file: 'src/admin/dashboard/page/probe.js', specifier: '../overview.ts' }],
    'src/fleet/': [
      { file: 'src/fleet/to-admin.ts', specifier: '../admin/schemas.ts' },
      { file: 'src/fleet/to-redis.ts', specifier: '@redis/client' },
    ],
    'src/fleet/redis/': [{ file: 'src/fleet/redis/to-undici.ts', specifier: 'undici' }],
    'src/serving/': [
      { file: 'src/serving/to-admin.ts', specifier: '../admin/schemas.ts' },
      { file: 'src/serving/to-control.ts', specifier: '../replicas/control/registry/registry.ts' },
    ],
    'src/serving/workers/': [
      { file: 'src/serving/workers/to-proxy.ts', specifier: '../../proxy/handle-request.ts' },
    ],
    'src/proxy/': [
      { file: 'src/proxy/to-admin.ts', specifier: '../admin/schemas.ts' },
      { file: 'src/proxy/attempt/to-control.ts', specifier: '../../replicas/control/registry/registry.ts' },
      { file: 'src/proxy/to-metrics.ts', specifier: '#otel/metrics/metric.ts' },
      { file: 'src/proxy/to-undici.ts', specifier: 'undici' },
      // A test, a measurement and a script are above everything.
      { file: 'src/proxy/to-test.ts', specifier: '../../test/support/replica.ts' },
      { file: 'src/proxy/to-lab.ts', specifier: '../../lab/main.ts' },
      { file: 'src/proxy/to-scripts.ts', specifier: '../../scripts/generate/registry.ts' },
      // A path that only looks like an import of its own room.
      { file: 'src/proxy/by-detour.ts', specifier: './attempt/../../admin/schemas.ts' },
      { file: 'src/proxy/around-otel.ts', specifier: '#otel/encode/../metrics/metric.ts' },
    ],
    'src/replicas/control/': [
      { file: 'src/replicas/control/to-proxy.ts', specifier: '../../proxy/failure.ts' },
      { file: 'src/replicas/control/to-encode.ts', specifier: '#otel/encode/attributes.ts' },
    ],
    'src/replicas/data/': [
      { file: 'src/replicas/data/to-control.ts', specifier: '../control/registry/registry.ts' },
      { file: 'src/replicas/data/to-disk.ts', specifier: '#otel/disk/regular-file.ts' },
    ],
    'src/replicas/shared/': [
      { file: 'src/replicas/shared/to-control.ts', specifier: '../control/registry/registry.ts' },
      { file: 'src/replicas/shared/to-data.ts', specifier: '../data/pool.ts' },
    ],
    'src/verdict/': [
      { file: 'src/verdict/to-clock.ts', specifier: 'node:timers' },
      { file: 'src/verdict/to-admin.ts', specifier: '../admin/route.ts' },
    ],
    'src/replicas/routing/': [
      { file: 'src/replicas/routing/to-crypto.ts', specifier: 'node:crypto' },
      { file: 'src/replicas/routing/to-data.ts', specifier: '../data/replica.ts' },
    ],
    'src/replicas/*': [{ file: 'src/replicas/reachability.ts', specifier: './data/replica.ts' }],
    'src/config/': [
      { file: 'src/config/to-replicas.ts', specifier: '../replicas/data/pool.ts' },
      { file: 'src/config/to-yaml.ts', specifier: 'yaml' },
    ],
    'src/config/load.ts': [{ file: 'src/config/load.ts', specifier: 'pino' }],
    'src/config/yaml/yaml-source.ts': [{ file: 'src/config/yaml/yaml-source.ts', specifier: 'zod' }],
    'src/http/': [
      { file: 'src/http/to-config.ts', specifier: '../config/config.ts' },
      { file: 'src/http/to-otel.ts', specifier: '#otel/encode/request-record.ts' },
      { file: 'src/http/to-pino.ts', specifier: 'pino' },
    ],
    'src/json/': [
      { file: 'src/json/to-http.ts', specifier: '../http/message/fields.ts' },
      { file: 'src/json/to-buffer.ts', specifier: 'node:buffer' },
    ],
    'src/simulate/': [{ file: 'src/simulate/to-json.ts', specifier: '../json/cursor.ts' }],
    'src/replay-trace/': [
      { file: 'src/replay-trace/to-gateway.ts', specifier: '../gateway.ts' },
      { file: 'src/replay-trace/to-fs.ts', specifier: 'node:fs' },
    ],
    'src/verify-ledger/': [{ file: 'src/verify-ledger/to-gateway.ts', specifier: '../gateway.ts' }],
    'src/file-lines.ts': [{ file: 'src/file-lines.ts', specifier: './gateway.ts' }],
    'otel/start-telemetry.ts': [{ file: 'otel/start-telemetry.ts', specifier: '../src/config/config.ts' }],
    'otel/span/': [
      { file: 'otel/span/to-src.ts', specifier: '../../src/config/config.ts' },
      { file: 'otel/span/to-metrics.ts', specifier: '../metrics/metric.ts' },
    ],
    'otel/metrics/': [{ file: 'otel/metrics/to-span.ts', specifier: '../span/tracer.ts' }],
    'otel/queue/': [
      { file: 'otel/queue/to-span.ts', specifier: '../span/tracer.ts' },
      { file: 'otel/queue/to-sdk.ts', specifier: '@opentelemetry/sdk-trace' },
    ],
    'otel/resource/': [{ file: 'otel/resource/to-queue.ts', specifier: '../queue/record-queue.ts' }],
    'otel/ledger/': [{ file: 'otel/ledger/to-queue.ts', specifier: '../queue/record-queue.ts' }],
    'otel/disk/': [{ file: 'otel/disk/to-queue.ts', specifier: '../queue/record-queue.ts' }],
    'otel/export/': [
      { file: 'otel/export/to-queue.ts', specifier: '../queue/record-queue.ts' },
      { file: 'otel/export/to-disk.ts', specifier: '../disk/spool.ts' },
      { file: 'otel/export/to-undici.ts', specifier: 'undici' },
    ],
    'otel/encode/': [
      { file: 'otel/encode/to-queue.ts', specifier: '../queue/record-queue.ts' },
      { file: 'otel/encode/to-fs.ts', specifier: 'node:fs' },
    ],
    'otel/*': [{ file: 'otel/clock.ts', specifier: './encode/attributes.ts' }],
    'no room': [
      { file: 'src/unplaced.ts', specifier: 'node:fs' },
      { file: 'src/unplaced/probe.ts', specifier: '../json/cursor.ts' },
      { file: 'otel/unplaced/probe.ts', specifier: '../encode/attributes.ts' },
    ],
    'types only': [
      { file: 'src/proxy/config-values.ts', specifier: '../config/config.ts' },
      { file: 'src/admin/record-values.ts', specifier: '#otel/encode/request-record.ts' },
    ],
    'no process': [
      { file: 'src/http/to-process.ts', specifier: 'node:process' },
      { file: 'otel/disk/to-process.ts', specifier: 'node:process' },
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
  text: write('../http/message/fields.ts'),
}));

/** Cycles of two and of three files; none of these imports is left when the program runs. */
const CYCLES: readonly (readonly string[])[] = [
  ['src/json/cycle-1.ts', 'src/json/cycle-2.ts'],
  ['src/http/cycle-1.ts', 'src/http/cycle-2.ts', 'src/http/cycle-3.ts'],
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
  const args = [program, '--config', config, '--output-type', 'json', '--preserve-symlinks', 'src', 'otel'];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd: folder, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      if (stdout.startsWith('{')) resolve(JSON.parse(stdout).summary.violations);
      else reject(new Error(`dependency-cruiser did not run: ${stderr}`, { cause: error }));
    });
  });
}

describe('the layers', () => {
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
    const broken = Object.values(VIOLATIONS).flat();
    // First what is imported, empty; then what imports it.
    for (const { file, specifier } of broken) {
      const target = specifier.startsWith('#') ? specifier.slice(1) : join(dirname(file), specifier);
      if (/^[.#]/.test(specifier)) await write(target, 'export {};\n');
    }
    for (const { file, specifier } of broken) await write(file, `import '${specifier}';\n`);
    for (const { file, text } of FORM_FILES) await write(file, `${text}\n`);
    for (const files of CYCLES)
      for (const [index, file] of files.entries()) {
        const next = (files[(index + 1) % files.length] ?? '').replace(/.*\//, './');
        await write(file, `import type { Thing } from '${next}';\nexport type Its = Thing;\n`);
      }
    violations = await checkLayers(folder);
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  const reportedBy = (rule: string) =>
    violations.filter((violation) => violation.rule.name === rule).map(({ from }) => from);

  test.each(Object.entries(VIOLATIONS))('%s: what breaks the rule is reported', (rule, broken) => {
    expect(reportedBy(rule)).toEqual(expect.arrayContaining(broken.map(({ file }) => file)));
  });

  test('every rule has a violation here', () => {
    const rules = layers.forbidden.map(({ name }) => name);
    expect([...Object.keys(VIOLATIONS), 'no cycle'].toSorted()).toEqual(rules.toSorted());
  });

  test('nothing else is reported', () => {
    const expected = [
      ...Object.entries(VIOLATIONS).flatMap(([rule, broken]) => broken.map(({ file }) => `${rule} ${file}`)),
      ...FORM_FILES.map(({ file }) => `src/json/ ${file}`),
    ];
    const reported = violations
      .filter(({ rule }) => rule.name !== 'no cycle')
      .map(({ rule, from }) => `${rule.name} ${from}`);
    expect(reported.toSorted()).toEqual(expected.toSorted());
  });

  test.each(FORM_FILES)('$form is seen', ({ file }) => {
    expect(reportedBy('src/json/')).toContain(file);
  });

  test('files that import each other are reported, even if only for their types', () => {
    const cycles = violations.flatMap(({ rule, cycle = [] }) =>
      rule.name === 'no cycle' ? [cycle.map(({ name }) => name).toSorted()] : [],
    );
    expect(cycles).toEqual(expect.arrayContaining(CYCLES.map((files) => files.toSorted())));
  });

  test('every path and package that a rule names exists', () => {
    const names = ROOMS.flatMap(({ path, may }) => [path, ...may]).filter((name) => name !== 'node:');
    const toFile = (name: string) =>
      /^(?:src|otel)\//.test(name) ? name.replace(/\*$/, '') : join('node_modules', name);
    expect(names.filter((name) => !existsSync(join(ROOT, toFile(name))))).toEqual([]);
  });
});

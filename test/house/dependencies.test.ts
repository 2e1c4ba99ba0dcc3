import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const manifest = JSON.parse(read('package.json')) as {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly files: readonly string[];
  readonly scripts: Readonly<Record<string, string>>;
};

test('docs/internals/dependencies.md gives a reason for each runtime dependency, and for no other package', () => {
  const rows = [
    ...read('docs/internals/dependencies.md').matchAll(/^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$/gm),
  ];
  expect(rows.map(([, name]) => name)).toEqual(Object.keys(manifest.dependencies).sort());
  for (const [, , use = '', reason = ''] of rows) expect([use.trim(), reason.trim()]).not.toContain('');
});

test('the bill of materials of the package has every runtime dependency in its version, and no tool of development', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spangate-sbom-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [program = '', script = '', file = ''] = manifest.scripts.prepack?.split(' ') ?? [];
  expect(manifest.files).toContain(file);
  execFileSync(program, [script, join(folder, file)], { cwd: ROOT });
  const bom = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  expect(bom.bomFormat).toBe('CycloneDX');
  const components = (bom.components as { name: string; group?: string; version: string }[]).map(
    ({ name, version }) => `${name}@${version}`,
  );
  const wanted = Object.entries(manifest.dependencies).map(([name, version]) => `${name}@${version}`);
  expect(wanted.filter((each) => !components.includes(each))).toEqual([]);
  expect(components.filter((each) => each.startsWith('vitest@'))).toEqual([]);
});

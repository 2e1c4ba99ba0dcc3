import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Writes the bill of materials of the package: `node scripts/sbom.ts FILE`. `npm sbom` makes it, in CycloneDX, from the lock
 * file without what only development needs. Its own `--omit dev` also leaves out packages that development needs too.
 */

const ROOT = join(import.meta.dirname, '..');
const [, , target] = process.argv;
if (target === undefined) throw new Error('usage: node scripts/sbom.ts FILE');

interface LockFile {
  readonly packages: Record<string, { readonly dev?: boolean; devDependencies?: object }>;
}

const folder = mkdtempSync(join(tmpdir(), 'spangate-sbom-'));
try {
  const { devDependencies: _, ...manifest } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as LockFile;
  for (const [path, entry] of Object.entries(lock.packages))
    if (entry.dev === true) delete lock.packages[path];
  delete lock.packages['']?.devDependencies;
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
  const words = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
  writeFileSync(target, execFileSync('npm', words, { cwd: folder, maxBuffer: 64 * 1024 ** 2 }));
} finally {
  rmSync(folder, { recursive: true });
}

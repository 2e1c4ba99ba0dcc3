import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  createReadStream,
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';

/*
 * What a release consists of. Each function puts its files into the folder of the release, which is below the checkout.
 */

/** The processors that executables are made for, as Node names them. */
const PROCESSORS = ['x64', 'arm64'] as const;

const run = (file: string, ...args: string[]) =>
  execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

/** The package for npm, with its bill of materials beside it. */
export function makePackage(folder: string, version: string): void {
  run('npm', 'pack', '--silent', '--pack-destination', folder);
  run(process.execPath, 'scripts/sbom.ts', join(folder, `spangate-${version}.cdx.json`));
}

/**
 * The single executables for Linux, compressed. The Node of this processor is the one that runs this; others come from npm, in
 * the same version, as packages whose integrity npm checks.
 */
export async function makeExecutables(folder: string, version: string): Promise<void> {
  for (const processor of PROCESSORS) {
    const work = mkdtempSync(join(tmpdir(), 'spangate-release-'));
    try {
      const output = join(work, 'gateway');
      const node = processor === process.arch ? process.execPath : fetchNode(processor, work);
      run(process.execPath, 'scripts/executable.ts', output, node);
      const target = join(folder, `gateway-${version}-linux-${processor}.gz`);
      await pipeline(createReadStream(output), createGzip(), createWriteStream(target));
    } finally {
      rmSync(work, { recursive: true });
    }
  }
}

/** Downloads the Node of another processor. Returns the path of its binary. */
function fetchNode(processor: string, work: string): string {
  const name = `node-linux-${processor}@${process.versions.node}`;
  const file = run('npm', 'pack', '--silent', '--pack-destination', work, name).trim();
  run('tar', '-xzf', join(work, file), '-C', work, 'package/bin/node');
  const node = join(work, 'package/bin/node');
  chmodSync(node, 0o755);
  return node;
}

/** The chart as a package, with the index of a chart repository. They have a folder of their own: helm chooses the name. */
export function makeChart(folder: string, version: string): void {
  const helm = run('scripts/helm.sh').trim();
  const charts = join(folder, 'chart');
  mkdirSync(charts);
  run(
    helm,
    'package',
    'deploy/helm/spangate',
    '--version',
    version,
    '--app-version',
    version,
    '--destination',
    charts,
  );
  run(helm, 'repo', 'index', charts);
}

/** The context of the image, of the committed files: `docker build -` reads it. */
export function makeImageContext(folder: string, version: string): void {
  const target = join(folder, `spangate-${version}-image-context.tar.gz`);
  const left = ['lab', 'test', 'testkit', 'docs/evidence', 'docs/images'].map((path) => `:(exclude)${path}`);
  run('git', 'archive', '--format', 'tar.gz', '--output', target, 'HEAD', '--', '.', ...left);
}

/** A file of the release, by its path in the folder. */
export interface Artefact {
  readonly name: string;
  readonly sha256: string;
  readonly bytes: number;
}

/** All files in the folder, by name. */
export async function listArtefacts(folder: string): Promise<readonly Artefact[]> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  const paths = files.map(({ parentPath, name }) => join(parentPath, name)).toSorted();
  return await Promise.all(
    paths.map(async (path) => {
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
        hash.update(chunk);
        bytes += chunk.length;
      }
      return { name: relative(folder, path), sha256: hash.digest('hex'), bytes };
    }),
  );
}

/** As `sha256sum --check` reads it. */
export function toChecksums(artefacts: readonly Artefact[]): string {
  return artefacts.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('');
}

/** The names that people read, with sizes. */
export function toList(folder: string, artefacts: readonly Artefact[]): string {
  const width = Math.max(...artefacts.map(({ name }) => name.length));
  const lines = artefacts.map(
    ({ name, bytes, sha256 }) =>
      `  ${name.padEnd(width)}  ${(bytes / 1e6).toFixed(2).padStart(7)} MB  ${sha256.slice(0, 16)}…\n`,
  );
  return `${basename(folder)}:\n${lines.join('')}`;
}

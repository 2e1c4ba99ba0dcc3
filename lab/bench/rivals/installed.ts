import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CACHE } from '../workspace.ts';

/** How to run a program, or why it cannot be run. */
export interface Installed {
  readonly obstacle: string | null;
  readonly command: { readonly file: string; readonly env?: Readonly<Record<string, string>> };
}

const NOT_INSTALLED = 'not installed: npm run bench -- --install';

/** The packages of npm's registry, in the cache folder. */
export const NPM_FOLDER = join(CACHE, 'npm');

/** Debian packages, unpacked into the cache folder. */
export const DEBIAN_FOLDER = join(CACHE, 'debian');

/** The virtual environment of one package of PyPI's. */
export const toVenv = (name: string): string => join(CACHE, `venv-${name}`);

/** Why a package of npm's registry cannot be used, or null. */
export function findNpmObstacle(name: string): string | null {
  return existsSync(join(NPM_FOLDER, 'node_modules', name, 'package.json')) ? null : NOT_INSTALLED;
}

/** A program that came from PyPI. */
export function findInVenv(venv: string, program: string): Installed {
  const file = join(toVenv(venv), 'bin', program);
  return { obstacle: existsSync(file) ? null : NOT_INSTALLED, command: { file } };
}

/** The version of a package of npm's registry, or null. */
export function readNpmVersion(name: string): string | null {
  const file = join(NPM_FOLDER, 'node_modules', name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : null;
}

/** The version of a package of PyPI, or null, from the name of its metadata folder (PEP 376). */
export function readVenvVersion(name: string): string | null {
  const [folder] = globSync(`lib/python*/site-packages/${name.replaceAll('-', '_')}-*.dist-info`, {
    cwd: toVenv(name),
  });
  return folder?.match(/-([^-]+)\.dist-info$/)?.[1] ?? null;
}

/** The version that `-v` prints, or null. */
export function readDebianVersion(program: string): string | null {
  const { file, env } = findDebian(program).command;
  const { stdout, stderr } = spawnSync(file, ['-v'], { env: { ...process.env, ...env }, encoding: 'utf8' });
  return `${stdout}${stderr}`.match(/\d+\.\d+\.\d+/)?.[0] ?? null;
}

/** A program of the system, or of a Debian package in the cache folder with the libraries beside it. */
export function findDebian(program: string): Installed {
  const folders = (process.env.PATH ?? '').split(delimiter).concat('/usr/sbin', '/usr/local/sbin');
  const own = folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
  if (own !== undefined) return { obstacle: null, command: { file: own } };
  const file = join(DEBIAN_FOLDER, 'usr/sbin', program);
  const libraries = ['usr/lib', 'lib'].map((folder) =>
    join(DEBIAN_FOLDER, folder, `${toMultiarch()}-linux-gnu`),
  );
  return {
    obstacle: existsSync(file) ? null : NOT_INSTALLED,
    command: { file, env: { LD_LIBRARY_PATH: libraries.join(':') } },
  };
}

/** Debian's name of the processor in library paths: https://wiki.debian.org/Multiarch/Tuples. */
function toMultiarch(): string {
  return process.arch === 'arm64' ? 'aarch64' : 'x86_64';
}

import { execFile } from 'node:child_process';
import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, mkdir, open, readdir, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGunzip } from 'node:zlib';
import { ROOT } from '#testkit/programs/results.ts';

const run = promisify(execFile);

/** A gateway that was installed in a folder of its own: the words that start it, before its arguments. */
export interface Installed {
  readonly version: string;
  readonly command: readonly string[];
}

/** The first file in the folder that matches. */
export async function findFile(folder: string, pattern: RegExp): Promise<string> {
  const name = (await readdir(folder)).find((each) => pattern.test(each));
  if (name === undefined) throw new Error(`${folder} has no file like ${pattern.source}`);
  return join(folder, name);
}

/** Checks the checksums of a release as people do. Returns how many files are right; rejects if one is not. */
export async function checkSums(folder: string): Promise<number> {
  const { stdout } = await run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: folder });
  return stdout.trim().split('\n').length;
}

/** Installs the package with npm, globally but below `prefix`. */
export async function installPackage(tarball: string, prefix: string): Promise<Installed> {
  await mkdir(prefix, { recursive: true });
  const words = [
    'install',
    '--global',
    '--prefix',
    prefix,
    '--no-audit',
    '--no-fund',
    '--silent',
    resolve(tarball),
  ];
  await run('npm', words, { cwd: prefix });
  // The first line of the command asks for `node`: that of this process, which the package allows.
  const command = [process.execPath, join(prefix, 'lib/node_modules/spangate/dist/src/main.js')];
  return { version: await askVersion(command), command };
}

/** Unpacks a single file. Returns its path. */
export async function unpackFile(compressed: string, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const file = join(folder, 'gateway');
  await pipeline(createReadStream(compressed), createGunzip(), createWriteStream(file));
  await chmod(file, 0o755);
  return file;
}

/** Unpacks the single file for this machine. */
export async function installFile(compressed: string, folder: string): Promise<Installed> {
  const file = await unpackFile(compressed, folder);
  return { version: await askVersion([file]), command: [file] };
}

/** The processor that an executable is for, by the head of its ELF file. */
export async function readProcessor(path: string): Promise<string> {
  await using file = await open(path);
  const { buffer } = await file.read(Buffer.alloc(20), { position: 0 });
  // e_machine (ELF-64): 62 is AMD x86-64, 183 is AArch64.
  const machine = buffer.readUInt16LE(18);
  return { 62: 'x64', 183: 'arm64' }[machine] ?? `machine ${machine}`;
}

/** Makes the package of another commit, in a clone. Returns its path. */
export async function packCommit(commit: string, folder: string): Promise<string> {
  await run('git', ['clone', '--quiet', '--no-hardlinks', ROOT, folder]);
  await run('git', ['checkout', '--quiet', commit], { cwd: folder });
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await run('npm', ['pack', '--silent'], {
    cwd: folder,
    env: { ...process.env, npm_config_ignore_scripts: 'false' },
  });
  return await findFile(folder, /^spangate-.*\.tgz$/);
}

/** What a gateway says to `--version`. The words start it. */
export async function askVersion([file = '', ...words]: readonly string[]): Promise<string> {
  return (await run(file, [...words, '--version'])).stdout.trim();
}

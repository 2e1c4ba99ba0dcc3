import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { copyFile, cp, link, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { onlyValueOf, parseDockerfile, type Stage, toEnvironment } from './dockerfile.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
/** What the base image brings besides Node; here it is the machine's own. */
const BASE = ['/usr/bin', '/usr/sbin', '/usr/lib', '/usr/lib64', '/bin', '/sbin', '/lib', '/lib64'];

/** An image that was built without Docker: each step of the Dockerfile was carried out under a root of its own. */
export interface ReplayedImage extends AsyncDisposable {
  readonly root: string;
  /** The last stage. */
  readonly stage: Stage;
  /**
   * Starts a container: a process of the image's user under a read-only root, with the volume and these files from
   * outside. Its network is the machine's.
   */
  start(command: readonly string[], options: ContainerOptions): ChildProcess;
}

/** What `docker run` is told. */
export interface ContainerOptions {
  /** Added to the variables of the image. */
  readonly env?: Readonly<Record<string, string>>;
  /** The paths of read-only files outside, by their paths inside. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Whether this machine lets us mount and change root, for a container without Docker. */
export async function canReplay(): Promise<boolean> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  const enough = run('unshare', ['--mount', 'sh', '-c', 'mount --bind /usr /usr']);
  return await enough.then(
    () => true,
    () => false,
  );
}

/** Carries out the Dockerfile. Takes half a minute: it installs all packages. */
export async function replayDockerfile(): Promise<ReplayedImage> {
  const folder = await mkdtemp(join(tmpdir(), 'spangate-image-'));
  const [build, final, ...others] = parseDockerfile(await readFile(join(ROOT, 'Dockerfile'), 'utf8'));
  if (build === undefined || final === undefined || others.length > 0) throw new Error('not two stages');
  const stages = { build: join(folder, 'build'), final: join(folder, 'root') };
  await carryOut(build, stages.build, { context: ROOT, run: runHere });
  await prepareBase(stages.final);
  await carryOut(final, stages.final, { context: stages.build, run: runInside });
  return {
    root: stages.final,
    stage: final,
    start: (command, options) => start(stages.final, final, command, options),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

interface Builder {
  /** The root that COPY takes from: the checkout, or an earlier stage. */
  readonly context: string;
  readonly run: (root: string, directory: string, command: string) => Promise<unknown>;
}

async function carryOut(stage: Stage, root: string, builder: Builder): Promise<void> {
  let directory = '/';
  for (const { name, value } of stage) {
    if (name === 'WORKDIR') {
      directory = resolve(directory, value);
      await mkdir(join(root, directory), { recursive: true });
    }
    if (name === 'COPY' && value === '. .') await copyCheckout(join(root, directory));
    else if (name === 'COPY') {
      const [, from = '', to = ''] = /^--from=build (\S+) (\S+)$/.exec(value) ?? [];
      if (from === '') throw new Error(`not understood: COPY ${value}`);
      const target = join(
        root,
        resolve(directory, to),
        to.endsWith('/') ? (from.split('/').at(-1) ?? '') : '',
      );
      await cp(join(builder.context, from), target, { recursive: true, verbatimSymlinks: true });
    }
    if (name === 'RUN') await builder.run(root, directory, value);
  }
}

/** Copies what `docker build` would send: the files of the checkout but for those in .dockerignore. */
async function copyCheckout(to: string): Promise<void> {
  const ignored = (await readFile(join(ROOT, '.dockerignore'), 'utf8'))
    .split('\n')
    .filter((line) => line !== '');
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z'];
  const { stdout } = await run('git', args, { cwd: ROOT, maxBuffer: 64 << 20 });
  const sent = stdout
    .split('\0')
    .filter((path) => path !== '' && !ignored.includes(path.split('/')[0] ?? ''));
  for (const path of sent) {
    await mkdir(dirname(join(to, path)), { recursive: true });
    await copyFile(join(ROOT, path), join(to, path));
  }
}

/** A step of the build stage: its paths are relative, so it needs no root of its own. */
async function runHere(root: string, directory: string, command: string): Promise<void> {
  const env = { ...process.env, npm_config_prefer_offline: 'true', npm_config_audit: 'false' };
  await run('sh', ['-ec', command], { cwd: join(root, directory), env, maxBuffer: 64 << 20 });
}

/** Makes what the base image has: Node, the user node, and places for what the machine lends. */
async function prepareBase(root: string): Promise<void> {
  for (const path of [...BASE, '/usr/local/bin', '/etc', '/proc', '/dev', '/tmp', '/var/lib']) {
    await mkdir(join(root, path), { recursive: true });
  }
  const node = join(root, 'usr/local/bin/node');
  await link(process.execPath, node).catch(() => copyFile(process.execPath, node)); // another file system
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\nnode:x:1000:1000::/:/bin/sh\n');
  await writeFile(join(root, 'etc/group'), 'root:x:0:\nnode:x:1000:\n');
}

const quote = (word: string) => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** The commands that show a process what is in the image, and what the machine lends. */
function toMounts(root: string, isReadOnly: boolean, files: Readonly<Record<string, string>>): string {
  const inside = (path: string) => quote(join(root, path));
  const options = isReadOnly ? 'remount,bind,ro' : 'remount,bind,rw';
  return [
    'set -e',
    ...Object.keys(files).map((path) => `mkdir -p ${inside(dirname(path))}; touch ${inside(path)}`),
    `mount --bind ${quote(root)} ${quote(root)}`,
    ...BASE.map((path) => `mount --bind ${path} ${inside(path)}; mount -o remount,bind,ro ${inside(path)}`),
    `mount --rbind /dev ${inside('/dev')}; mount -t proc proc ${inside('/proc')}`,
    // A new volume begins with the directory of the image.
    ...(isReadOnly ? [`mount --bind ${inside('/var/lib/spangate')} ${inside('/var/lib/spangate')}`] : []),
    `mount -o ${options} ${quote(root)}`,
    ...Object.entries(files).map(([path, from]) => `mount --bind ${quote(from)} ${inside(path)}`),
    ...Object.keys(files).map((path) => `mount -o remount,bind,ro ${inside(path)}`),
  ].join('\n');
}

/** A step of the last stage, as root. */
async function runInside(root: string, directory: string, command: string): Promise<void> {
  const chroot = `exec chroot ${quote(root)} sh -ec ${quote(`cd ${directory} && ${command}`)}`;
  await run('unshare', ['--mount', 'sh', '-c', `${toMounts(root, false, {})}\n${chroot}`]);
}

function start(
  root: string,
  stage: Stage,
  command: readonly string[],
  options: ContainerOptions,
): ChildProcess {
  const { env = {}, files = {} } = options;
  const all = { PATH: '/usr/local/bin:/usr/bin:/bin', ...toEnvironment(stage), ...env };
  const variables = Object.entries(all).map(([name, value]) => quote(`${name}=${value}`));
  const words = [`--userspec=${onlyValueOf(stage, 'USER')}`, '--groups=', root, 'env', '-i'].map(quote);
  const line = ['exec', 'chroot', ...words, ...variables, ...command.map(quote)].join(' ');
  const script = `${toMounts(root, true, files)}\n${line}`;
  return spawn('unshare', ['--mount', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'pipe'] });
}

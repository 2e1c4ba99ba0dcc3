import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtempDisposable, readFile, readlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { chatOnce } from '#testkit/programs/chat-once.ts';
import { startChild } from '#testkit/programs/child.ts';
import { treeOf } from '#testkit/programs/process-tree.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { startProgress } from '#testkit/programs/progress.ts';
import { ROOT } from '#testkit/programs/results.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';

const USAGE = `npm run lab -- image
  Builds the Dockerfile of the last commit with buildah, as a user without privileges, and starts the image: it is asked
  for a request and for its health, and stopped. Exits with 1 if something is not as docs/install.md says. Real are the
  Dockerfile, the builder, the user namespace, the packages and the entry point. Played are the base image, which is made
  of Debian, Node and npm under its name, and the network, which is the machine's. Without buildah or mmdebstrap it says
  so and ends. Needs root, on x64. Takes two minutes.`;

startProgram(USAGE, {});
const run = promisify(execFile);
/** The one that the base image brings; any that Node 26 takes will do. */
const NPM_VERSION = '12.2.2';

const missing = findMissing();
if (missing === null) await tryImage();
else console.log(`The image is not built: this machine has ${missing}.`);

/** What the machine lacks, as a part of a sentence; null if it has all. */
function findMissing(): string | null {
  if (process.getuid?.() !== 0) return 'no root to make a user with';
  if (process.arch !== 'x64') return `the processor ${process.arch}, not x64`;
  const missing = ['buildah', 'mmdebstrap', 'newuidmap'].find((tool) => !existsSync(join('/usr/bin', tool)));
  return missing === undefined ? null : `no ${missing}`;
}

async function tryImage(): Promise<void> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-image-'));
  await chmod(folder.path, 0o755);
  const home = folder.path;
  const script = (name: string) => join(home, name);
  for (const name of ['as-builder.sh', 'build.sh'])
    await writeFile(script(name), await readFile(join(import.meta.dirname, name)), { mode: 0o755 });
  const toBuilder = (...command: string[]) => ['--mount', 'sh', script('as-builder.sh'), home, ...command];
  const store = ['--storage-driver', 'vfs', '--root', script('storage'), '--runroot', script('run/storage')];
  const inStore = (...words: string[]) => toBuilder('buildah', ...store, ...words);
  const buildah = async (...words: string[]) => (await run('unshare', inStore(...words))).stdout.trim();

  const context = script('context.tar.gz');
  await run('git', ['archive', '--format', 'tar.gz', '--output', context, 'HEAD'], { cwd: ROOT });
  const { devDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const progress = startProgress(1);
  await progress.during('makes the base image, and builds the Dockerfile', () =>
    run('unshare', toBuilder('sh', script('build.sh'), devDependencies.node, NPM_VERSION, context), {
      maxBuffer: 64 << 20,
    }),
  );

  const { Docker } = JSON.parse(await buildah('inspect', '--type', 'image', 'spangate'));
  const { config } = Docker;
  ensure(config.User === '1000:1000', 'the image runs as 1000:1000');
  ensure(config.Cmd === null || config.Cmd.length === 0, 'no command of the base image is left');
  ensure(config.Healthcheck?.Test?.join(' ') === 'CMD gateway health', 'its health check is gateway health');
  ensure('/var/lib/spangate' in config.Volumes, 'its state is a volume');
  ensure(config.Labels['org.opencontainers.image.title'] === 'Spangate', 'a label names what is in it');
  const container = await buildah('from', '--pull-never', 'spangate');
  const inside = (...words: string[]) => buildah('run', '--isolation', 'chroot', container, '--', ...words);
  ensure((await inside('id', '-u')) === '1000', 'a command in it has the user id 1000');
  ensure(
    (await inside('ls', '/app', '/app/build')) === '/app:\nbuild\n\n/app/build:\nbundle',
    'it has the bundle alone',
  );
  ensure(
    /^drwx------ .* node node /.test(await inside('ls', '-ld', '/var/lib/spangate')),
    'its state is its own',
  );
  const files = (await inside('ls', '/app/build/bundle')).split('\n');
  ensure(files.includes('licenses.txt'), 'it has the licences of the packages in it');
  console.log(
    `    /app has ${(await inside('du', '-sm', '/app')).split('\t')[0]} MB, in ${files.length} entries`,
  );

  await using replica = await startSimulatedReplica({ models: ['demo'] });
  const listen = `127.0.0.1:${await findFreePort()}`;
  const configPath = script('gateway.yaml');
  const settings = {
    gateway: { listen, admin_listen: '127.0.0.1:0' },
    replicas: [{ name: 'a', url: replica.url, models: ['demo'] }],
    export: { endpoint: 'http://127.0.0.1:9' },
    shutdown: { delay: '0s', grace: '5s', flush: '1s' },
  };
  await writeFile(configPath, JSON.stringify(settings), { mode: 0o644 });
  const mount = ['--volume', `${configPath}:/etc/spangate/gateway.yaml:ro`];
  const runMounted = ['run', '--isolation', 'chroot', ...mount, container, '--'];
  await using machine = startChild(
    { file: 'unshare', args: inStore(...runMounted, ...config.Entrypoint) },
    { stdout: 'lines', logPath: script('log') },
  );
  await machine.untilLine((line) => line.includes('"msg":"serving"'));
  ensure(true, 'its entry point serves');
  await chatOnce(`http://${listen}`, 'demo');
  ensure(true, 'a request goes through it');
  const health = await buildah(...runMounted, 'gateway', 'health');
  ensure(health === 'ok', 'the command of the health check says ok');
  process.kill(await findGateway(machine.pid), 'SIGTERM');
  ensure((await machine.exited) === 0, 'a SIGTERM ends it with code 0');
}

/** The process of the entry point below the builder: the only one whose program is Node. */
async function findGateway(pid: number): Promise<number> {
  for (const each of treeOf(pid)) {
    if ((await readlink(`/proc/${each}/exe`)).endsWith('/usr/local/bin/node')) return each;
  }
  throw new Error('the process of the entry point is not found');
}

function ensure(holds: boolean, what: string): void {
  if (!holds) throw new Error(`FAILED ${what}`);
  console.log(`ok  ${what}`);
}

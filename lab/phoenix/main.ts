import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { startProgram } from '#testkit/programs/program.ts';
import { ROOT } from '#testkit/programs/results.ts';
import { USER_CACHE } from '#testkit/programs/user-cache.ts';

const VERSION = '20.26.1';
const USAGE = `npm run e2e:phoenix -- [options]
  Sends requests through a gateway to Arize Phoenix ${VERSION}, by protobuf without a collector and then through one, and
  exits with 1 if a record is not there with its model and tokens. Installs Phoenix and builds the collector on first use, some minutes each. Needs Linux,
  Go and Python 3.
  --picture  takes the picture of docs/images, too; needs Debian's chromium`;

const { picture = false } = startProgram(USAGE, { picture: { type: 'boolean' } });
const phoenix = join(USER_CACHE, `phoenix-${VERSION}`);
if (!existsSync(join(phoenix, 'bin/phoenix'))) {
  console.log(`installing Phoenix ${VERSION} into ${phoenix}`);
  run('python3', ['-m', 'venv', phoenix]);
  run(join(phoenix, 'bin/pip'), ['-q', 'install', `arize-phoenix==${VERSION}`]);
}
run(join(ROOT, 'scripts/otelcol/build.sh'), []);
const check = [process.execPath, join(import.meta.dirname, 'check.ts')];
// Phoenix' gRPC port listens on every address, whatever PHOENIX_HOST says: the namespace has the loopback alone.
const inNamespace = ['--net', '--map-root-user', 'bash', '-c', 'ip link set lo up && exec "$@"', '--'];
const { stdout } = spawnSync(join(ROOT, 'scripts/otelcol/build.sh'), ['--path'], { encoding: 'utf8' });
const env = { PHOENIX: phoenix, COLLECTOR: stdout.trim() };
run('unshare', [...inNamespace, ...check, '--direct'], env);
run('unshare', [...inNamespace, ...check, ...(picture ? ['--picture'] : [])], env);

/** Runs a command to its end; ends this process with the command's exit code if that is not 0. */
function run(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): void {
  const { status, error } = spawnSync(file, args, { stdio: 'inherit', env: { ...process.env, ...env } });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

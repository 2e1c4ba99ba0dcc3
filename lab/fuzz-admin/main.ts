import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSimulatedReplica } from '#simulate';
import { ADMIN_TOKEN, startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { USER_CACHE } from '#testkit/programs/user-cache.ts';

const USAGE = `npm run fuzz:admin -- [options]
  Starts a gateway and calls its admin API with Schemathesis: what the OpenAPI document allows, and what it does not.
  Each answer must have a status, a type and a shape that the document names; wrong calls must be refused, and calls
  without the token; nothing may be answered with 5xx that the document does not name. Installs Schemathesis (Python) in
  the user's cache at first.
  --examples N  calls of each kind for each operation (15)
  --seed N      seed of their generator (1)`;

const { examples, seed } = startProgram(USAGE, {
  examples: { type: 'string', default: '15' },
  seed: { type: 'string', default: '1' },
});

const VERSION = '4.32.5';
/**
 * Any other method is answered with 404, as on the proxied endpoints, and a pattern cannot say that the parts of a duration
 * add up to an hour at most.
 */
const EXCLUDED_CHECKS = 'unsupported_method,positive_data_acceptance';
/** What a wrong call is refused with. Schemathesis does not count 413 by itself, but makes bodies larger than any call may send. */
const SETTINGS = `[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 409, 413, 415, 429, 503]
`;

const program = install();
await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-fuzz-admin-'));
await writeFile(join(folder.path, 'schemathesis.toml'), SETTINGS);
const replica = createSimulatedReplica({ models: ['m'] });
const { url } = await replica.start();
{
  await using gateway = await startGateway(folder.path, {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    state_dir: join(folder.path, 'state'),
    replicas: [{ name: 'a', url, models: ['m'] }],
    export: { to: 'file' },
  });
  process.exitCode = await callAll(gateway.adminUrl);
  await gateway.stats(); // it still answers
}
await replica.close();

/** Returns the path of the program. */
function install(): string {
  const venv = join(USER_CACHE, `schemathesis-${VERSION}`);
  const installed = join(venv, 'bin/schemathesis');
  if (!existsSync(installed)) {
    execFileSync('python3', ['-m', 'venv', venv]);
    execFileSync(join(venv, 'bin/pip'), ['install', '--quiet', `schemathesis==${VERSION}`], {
      stdio: 'inherit',
    });
  }
  return installed;
}

/** Returns the exit code: 1 if something was answered otherwise than the document says. */
async function callAll(adminUrl: string): Promise<number> {
  const words = [
    ...['run', `${adminUrl}/openapi.json`, '--header', `Authorization: Bearer ${ADMIN_TOKEN}`],
    ...['--checks', 'all', '--exclude-checks', EXCLUDED_CHECKS, '--no-color', '--request-timeout', '60'],
    ...['--max-examples', String(toCount(examples)), '--seed', String(toCount(seed))],
  ];
  const child = spawn(program, words, { cwd: folder.path, stdio: 'inherit' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

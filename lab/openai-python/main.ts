import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from '#testkit/certificates.ts';
import { startChild } from '#testkit/programs/child.ts';
import { startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { USER_CACHE } from '#testkit/programs/user-cache.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';

startProgram(
  'npm run lab -- openai-python\n  The official client of OpenAI for Python against a gateway over https. Installs it in the user cache.',
  {},
);

const VENV = join(USER_CACHE, 'openai-python');
const PYTHON = join(VENV, 'bin/python');

/** Runs a command to its end, with its output on this terminal. */
async function run(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  await using child = startChild({ file, args, env }, { stdout: 'shown' });
  const code = await child.exited;
  if (code !== 0) throw new Error(`${file} ended with ${code}`);
}

if (!existsSync(join(VENV, 'bin/openai'))) {
  await run('python3', ['-m', 'venv', VENV]);
  await run(PYTHON, ['-m', 'pip', '-q', 'install', 'openai', 'httpx']);
}

await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-python-'));
await using authority = await createAuthority();
await using replica = await startSimulatedReplica();
const { certPath, keyPath } = await authority.issue('gateway');
const clientOf = (name: string, more: object = {}) => ({
  name,
  key_sha256: createHash('sha256').update(`${name}-key`).digest('hex'),
  ...more,
});
await using gateway = await startGateway(folder.path, {
  gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0', tls: { cert: certPath, key: keyPath } },
  export: { to: 'file' },
  replicas: [{ name: 'a', url: replica.url, models: ['m'] }],
  clients: [
    clientOf('right'),
    clientOf('narrow', { models: ['other'] }),
    clientOf('one', { requests_per_minute: 1 }),
  ],
});
await run(PYTHON, [join(import.meta.dirname, 'client.py')], {
  GATEWAY_URL: gateway.url.replace('http:', 'https:'),
  CA_FILE: authority.ca.certPath,
});

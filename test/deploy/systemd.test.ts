import { execFile } from 'node:child_process';
import { chmod, copyFile, cp, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parseConfig } from '#config';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';

const run = promisify(execFile);
const FOLDER = join(import.meta.dirname, '../../deploy/systemd');
const UNIT = join(FOLDER, 'spangate.service');
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

  test('runs as the user that spangate.conf makes, who stays', async () => {
    const [unit, users] = await Promise.all([
      readFile(UNIT, 'utf8'),
      readFile(join(FOLDER, 'spangate.conf'), 'utf8'),
    ]);
    const user = /^u (\S+) /m.exec(users)?.[1];
    expect(unit).toMatch(new RegExp(`^User=${user}$`, 'm'));
    expect(unit).toMatch(new RegExp(`^Group=${user}$`, 'm'));
    expect(unit).not.toContain('DynamicUser');
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

const HOOK = 'certbot-deploy-hook.sh';
const HOOK_PLACE = '/etc/letsencrypt/renewal-hooks/deploy/spangate';
const LINEAGE = '/etc/letsencrypt/live/llm.example.com';
const isRoot = process.getuid?.() === 0;

/** A system of its own in a folder: the user of the service, certbot's hook, and the programs that the hook calls. */
async function makeSystem() {
  const root = await temporaryFolder();
  await chmod(root, 0o755);
  await mkdir(join(root, 'etc/sysusers.d'), { recursive: true });
  await copyFile(join(FOLDER, 'spangate.conf'), join(root, 'etc/sysusers.d/spangate.conf'));
  await run('systemd-sysusers', [`--root=${root}`]);
  for (const program of ['/bin/sh', '/usr/bin/install']) {
    const { stdout } = await run('ldd', [program]);
    for (const path of [program, ...(stdout.match(/\/\S+/g) ?? [])]) {
      await mkdir(join(root, dirname(path)), { recursive: true });
      await cp(path, join(root, path), { dereference: true });
    }
  }
  await mkdir(join(root, dirname(HOOK_PLACE)), { recursive: true });
  await copyFile(join(FOLDER, HOOK), join(root, HOOK_PLACE));
  const passwd = await readFile(join(root, 'etc/passwd'), 'utf8');
  const [uid = 0, gid = 0] = /^spangate:[^:]*:(\d+):(\d+):/m.exec(passwd)?.slice(1).map(Number) ?? [];
  return { root, uid, gid };
}

/** Has certbot renew a certificate: new files, and a call of the hook. */
async function renew(root: string, lineage: string, content: string): Promise<void> {
  await mkdir(join(root, lineage), { recursive: true, mode: 0o700 });
  await writeFile(join(root, lineage, 'fullchain.pem'), `certificate ${content}`);
  await writeFile(join(root, lineage, 'privkey.pem'), `key ${content}`, { mode: 0o600 });
  const env = { PATH: '/usr/bin:/bin', RENEWED_LINEAGE: lineage };
  await run('/usr/sbin/chroot', [root, HOOK_PLACE], { env });
}

describe("certbot's hook", () => {
  test('can be run, and goes where docs/security.md says', async () => {
    const page = await readFile(join(FOLDER, '../../docs/security.md'), 'utf8');
    expect(page).toContain(`(../deploy/systemd/${HOOK})`);
    expect(page).toContain(`\`${HOOK_PLACE}\``);
    expect((await stat(join(FOLDER, HOOK))).mode & 0o111).toBe(0o111);
  });

  test.skipIf(!isRoot || !hasSystemd)(
    'gives the user of the service, and nobody else, the key of each renewal',
    async () => {
      const { root, uid, gid } = await makeSystem();
      expect(uid).toBeGreaterThan(0);
      const key = join(root, 'etc/spangate/tls/gateway.key');
      const readAs = (user: number, group: number) =>
        run('cat', [key], { uid: user, gid: group }).then(({ stdout }) => stdout);
      for (const content of ['of May', 'of July']) {
        await renew(root, LINEAGE, content);
        expect(await readAs(uid, gid)).toBe(`key ${content}`);
        const certificate = await readFile(join(root, 'etc/spangate/tls/gateway.pem'), 'utf8');
        expect(certificate).toBe(`certificate ${content}`);
      }
      await expect(readAs(uid + 1, gid + 1)).rejects.toThrow('Permission denied');
      await renew(root, '/etc/letsencrypt/live/another.example.com', 'of another name');
      expect(await readAs(uid, gid)).toBe('key of July');
    },
  );
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadSalt } from '../../../src/gateway/composition/salt.ts';

let parent: string;
let stateDir: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'spangate-salt-'));
  stateDir = join(parent, 'state');
});

afterEach(async () => {
  await rm(parent, { recursive: true });
});

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode & 0o777;
}

async function loadInAnotherProcess(): Promise<string> {
  const script = `
    import { loadSalt } from ${JSON.stringify(new URL('../../../src/gateway/composition/salt.ts', import.meta.url).href)};
    console.log((await loadSalt(${JSON.stringify(stateDir)})).toString());`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return output.trim();
}

describe('the salt', () => {
  it('is created on first start, readable by the owner only, and read again', async () => {
    const salt = (await loadSalt(stateDir)).toString();
    expect(salt).toMatch(/^[0-9a-f]{64}$/);
    expect(await readFile(join(stateDir, 'salt'), 'utf8')).toBe(`${salt}\n`);
    expect(await modeOf(stateDir)).toBe(0o700);
    expect(await modeOf(join(stateDir, 'salt'))).toBe(0o600);
    expect(await readdir(stateDir)).toEqual(['salt']);
    expect((await loadSalt(stateDir)).toString()).toBe(salt);
  });

  it('differs in another directory', async () => {
    expect(await loadSalt(stateDir)).not.toEqual(await loadSalt(join(parent, 'other')));
  });

  it('is the configured one, without trailing white space, and then needs no directory', async () => {
    expect((await loadSalt(stateDir, ' s\u00e4lt \r\n')).toString()).toBe(' s\u00e4lt');
    expect(await readdir(parent)).toEqual([]);
  });

  it("is the same whether it is read from the file or configured as the file's text", async () => {
    const salt = await loadSalt(stateDir);
    expect(await loadSalt(stateDir, await readFile(join(stateDir, 'salt'), 'utf8'))).toEqual(salt);
  });

  it.each(['', ' \n'])('is not configured by %j', async (configured) => {
    expect((await loadSalt(stateDir, configured)).toString()).toMatch(/^[0-9a-f]{64}$/);
  });

  it('is the same for all processes that start at the same time', async () => {
    const inThisProcess = Array.from({ length: 20 }, async () => (await loadSalt(stateDir)).toString());
    const inOthers = Array.from({ length: 3 }, loadInAnotherProcess);
    const salts = new Set(await Promise.all([...inThisProcess, ...inOthers]));
    expect([...salts]).toEqual([(await readFile(join(stateDir, 'salt'), 'utf8')).trim()]);
    expect(await readdir(stateDir)).toEqual(['salt']);
  });

  it.each(['', 'canary', 'A'.repeat(64), `${'0'.repeat(63)}\n`])(
    'is never replaced where the file holds %j instead',
    async (content) => {
      await loadSalt(stateDir);
      await writeFile(join(stateDir, 'salt'), content);
      const failed = await loadSalt(stateDir).catch((error: unknown) => error);
      expect(failed).toMatchObject({ name: 'SaltFileError' });
      expect(String(failed)).toContain(join(stateDir, 'salt'));
      expect(String(failed)).not.toContain('canary');
      expect(await readFile(join(stateDir, 'salt'), 'utf8')).toBe(content);
    },
  );

  it('is the same for many processes that race for it, each seeing a whole file', async () => {
    const salts = new Set(await Promise.all(Array.from({ length: 8 }, loadInAnotherProcess)));
    expect([...salts]).toEqual([(await readFile(join(stateDir, 'salt'), 'utf8')).trim()]);
    expect([...salts][0]).toMatch(/^[0-9a-f]{64}$/);
    expect(await modeOf(join(stateDir, 'salt'))).toBe(0o600);
  });

  it('is created again, not read from the half-written draft of a process that died', async () => {
    await mkdir(stateDir);
    await writeFile(join(stateDir, 'salt.dead.tmp'), 'abc');
    expect((await loadSalt(stateDir)).toString()).toMatch(/^[0-9a-f]{64}$/);
    expect(await readFile(join(stateDir, 'salt.dead.tmp'), 'utf8')).toBe('abc');
  });

  it('is read from a file that the operator wrote, without changing its permissions', async () => {
    await mkdir(stateDir);
    const path = join(stateDir, 'salt');
    await writeFile(path, `${'0a'.repeat(32)}\r\n`, { mode: 0o640 });
    expect((await loadSalt(stateDir)).toString()).toBe('0a'.repeat(32));
    expect(await modeOf(path)).toBe(0o640);
  });

  it('cannot be read from what is not a regular file', async () => {
    await mkdir(join(stateDir, 'salt'), { recursive: true });
    await expect(loadSalt(stateDir)).rejects.toMatchObject({ code: 'not_a_file' });
  });

  it('cannot be created if the directory cannot', async () => {
    await writeFile(join(parent, 'file'), '');
    await expect(loadSalt(join(parent, 'file', 'state'))).rejects.toMatchObject({ code: 'ENOTDIR' });
  });
});

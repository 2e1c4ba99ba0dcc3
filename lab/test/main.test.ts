import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { PROGRAMS, toFile } from '../main.ts';

const run = promisify(execFile);
const LAB = join(import.meta.dirname, '..');

describe('the lab', () => {
  test('lists every program that there is', () => {
    const files = globSync(
      [
        '*/main.ts',
        'conditions/calm.ts',
        'history/{day,kills,limit}.ts',
        'llama/compare.ts',
        'measure/*.ts',
        'tls/*.ts',
      ],
      { cwd: LAB },
    );
    expect(Object.keys(PROGRAMS).map(toFile).sort()).toEqual(files.sort());
  });

  test('lab/README.md has one row for each program', () => {
    const rows = readFileSync(join(LAB, 'README.md'), 'utf8').matchAll(/^\| `([\w/-]+)` \|/gm);
    expect([...rows].map(([, name]) => name).sort()).toEqual(Object.keys(PROGRAMS).sort());
  });

  describe('with --help', () => {
    let usages: Readonly<Record<string, string>>;
    beforeAll(async () => {
      const { stdout } = await run(process.execPath, [join(LAB, 'test/print-usages.ts')]);
      usages = JSON.parse(stdout);
    });

    test.for(Object.keys(PROGRAMS))('%s prints its usage', async (name) => {
      // A program that tests import runs only where it is what was started.
      const alone = async () => await run(process.execPath, [join(LAB, toFile(name)), '--help']);
      expect(usages[name] ?? (await alone()).stdout).toMatch(/^npm run .+\n {2}\S/);
    });
  });

  test('starts a program with its options, and prints the list without a name', async () => {
    const [help, list] = await Promise.all([
      run(process.execPath, [join(LAB, 'main.ts'), 'fuzz-http', '--help']),
      run(process.execPath, [join(LAB, 'main.ts')]),
    ]);
    expect(help.stdout).toMatch(/^npm run fuzz:http/);
    expect(list.stdout).toContain('measure/guard');
  });

  test('a program that does not exist is an error', async () => {
    await expect(run(process.execPath, [join(LAB, 'main.ts'), 'unknown'])).rejects.toMatchObject({ code: 2 });
  });
});

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');

test('shellcheck finds nothing in the shell scripts', async (context) => {
  const hasLinter = await run('shellcheck', ['--version']).then(
    () => true,
    () => false,
  );
  const reason = 'needs shellcheck (the package shellcheck of Debian)';
  if (!hasLinter && process.env.CI === 'true') throw new Error(reason);
  if (!hasLinter) context.skip(reason);
  const { stdout } = await run('git', ['ls-files', '*.sh', '.ci/*'], { cwd: ROOT });
  const scripts = stdout.split('\n').filter((path) => path !== '');
  expect(scripts).toEqual(expect.arrayContaining(['.ci/run', '.ci/nightly']));
  await run('shellcheck', scripts, { cwd: ROOT });
});

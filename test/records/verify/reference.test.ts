import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { generateInstance, toLine } from '#testkit/records/generated-records.ts';

const DOCUMENT = join(import.meta.dirname, '../../../docs/internals/ledger-form.md');
const hasPython = spawnSync('python3', ['--version']).status === 0;

test('the Python in docs/internals/ledger-form.md computes the digests and chains of the gateway', async (context) => {
  if (!hasPython) context.skip('python3 is not installed');
  const [, code = ''] = /^```python\n(.*?)^```/ms.exec(await readFile(DOCUMENT, 'utf8')) ?? [];
  const { records, ledgers } = generateInstance('a', [
    ...Array.from({ length: 1100 }, () => 'queued' as const),
    'dropped',
    'queued',
  ]);
  const spans = records.map(({ json }) => json);
  const changed = spans.with(1050, spans[1050]?.replace('søk', 'sok') ?? '');
  const read = (lines: readonly string[]) =>
    spawnSync('python3', ['-c', code], {
      input: lines.map((line) => toLine([line])).join(''),
      encoding: 'utf8',
    });

  expect(read([...spans, ...ledgers])).toMatchObject({
    stderr: '',
    stdout: 'a 1 1024 intact equal\na 1025 1102 intact equal\n',
  });
  expect(read([...changed, ledgers[0] ?? '', ledgers[1]?.replace('"77"', '"79"') ?? '']).stdout).toBe(
    'a 1 1024 intact equal\na 1025 1102 changed different\n',
  );
});

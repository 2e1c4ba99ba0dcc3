import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readCompared } from '../../scripts/compared-releases.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/comparison.md'), 'utf8');

test('each gateway that docs/comparison.md compares has a version, the day it was read on, and its package if it has one', () => {
  const [, table = ''] = PAGE.split(/^\| Gateway \|.*\n\|[-|]+\n/m);
  const rows =
    table
      .split('\n\n')[0]
      ?.split('\n')
      .filter((line) => line.startsWith('| [')) ?? [];
  const compared = readCompared(PAGE);
  expect(compared.map(({ name }) => name)).toEqual(rows.map((row) => /\[([^\]]+)\]/.exec(row)?.[1]));
  expect(compared.length).toBeGreaterThan(10);
  expect(compared.find(({ name }) => name === 'LiteLLM')?.package).toEqual({
    registry: 'PyPI',
    name: 'litellm',
  });
});

test('each gateway of the list is in each table of the page', () => {
  const sections = PAGE.split(/^## /m)
    .slice(1)
    .filter((section) => /^(?:Taking|Tokens|Telemetry|Who)/.test(section));
  const missing = sections.flatMap((section) =>
    readCompared(PAGE)
      .filter(({ name }) => !section.includes(name))
      .map(({ name }) => `${section.split('\n')[0]}: ${name}`),
  );
  expect(missing).toEqual([]);
});

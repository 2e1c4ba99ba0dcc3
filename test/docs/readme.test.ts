import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { countWords } from '../../scripts/words.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const README = read('README.md');

/** The text of the cell in the n-th column of a table's row that begins with these words. */
function cellOf(text: string, row: string, column: number): string {
  const line = text.split('\n').find((each) => each.startsWith(`| ${row} |`)) ?? '';
  return line.split('|')[column + 1]?.trim() ?? '';
}

describe('the figures of the README are those of the page that it links to:', () => {
  test('fleet', () => {
    const [, restarted, requests, failed] =
      /replicas restarted +(\d+)\n +requests +(\d+)\n +requests failed +(\d+)\n/.exec(
        read('docs/evidence/fleet.md'),
      ) ?? [];
    expect(restarted).toBe('4');
    expect(README).toContain(`of ${Number(requests).toLocaleString('en')} requests ${failed} fail `);
  });

  test('reliability', () => {
    const [, table = ''] = /<!-- measured -->(.*?)<!-- end/s.exec(read('docs/evidence/reliability.md')) ?? [];
    const rows = table
      .split('\n')
      .filter((line) => /^\| .*\| \d+ \|/.test(line) && !line.startsWith('| none |'));
    const sumOf = (column: number) => rows.reduce((sum, row) => sum + Number(row.split('|')[column]), 0);
    expect(README).toContain(
      `${rows.length} faults, ${sumOf(2).toLocaleString('en')} requests: ${sumOf(3)} fails, on a replica that is killed`,
    );
    expect(cellOf(table, 'a replica is killed', 2)).toBe('1');
  });

  test.each([
    ['CPU per request, µs (`plain`)', 'plain', 1],
    ["delay of a stream's event, 99th percentile, ms (`paced-1000`)", 'paced-1000', 4],
    ['memory with 1,000 streams, MB (`paced-1000`)', 'paced-1000', 6],
  ] as const)('benchmarks: %s', (row, name, column) => {
    const [, section = ''] = read('docs/evidence/benchmarks.md').split(`\n### ${name}\n`);
    const measured = ['gateway', 'envoy', 'envoy-traced', 'vllm-router', 'smg'].map((target) =>
      cellOf(section, target, column).replace(/ \(.*/, ''),
    );
    expect([1, 2, 3, 4, 5].map((each) => cellOf(README, row, each))).toEqual(measured);
  });
});

test("the README's pictures are there, and have words for those who do not see them", () => {
  const pictures = [...README.matchAll(/<img src="([^"]+)" alt="([^"]{20,})" width="\d+">/g)];
  expect(pictures).toHaveLength(README.split('<img').length - 1);
  expect(pictures.map(([, path = '']) => existsSync(join(ROOT, path)))).toEqual([true]);
});

test('every page is in the list of all pages, once', () => {
  const pages = globSync('{*,evidence/*,internals/*}.md', { cwd: join(ROOT, 'docs') });
  const listed = [...read('docs/README.md').matchAll(/^\d+\. \[[^\]]+\]\(([\w/-]+\.md)\)/gm)].map(
    ([, name]) => name,
  );
  expect(listed.toSorted()).toEqual(
    [...pages.filter((name) => name !== 'README.md'), 'decisions/README.md'].toSorted(),
  );
});

test('a person can read the pages for users: they are few, and short together (npm run words)', () => {
  const words = countWords();
  expect(words.size).toBeLessThanOrEqual(27);
  expect(words.values().reduce((all, count) => all + count, 0)).toBeLessThanOrEqual(45_000);
});

test('each page for users begins with when one wants it', () => {
  const others = [...countWords().keys()]
    .filter((page) => page !== 'README.md')
    .filter((page) => !/^(?:<!--.*-->\n)?# .+\n\nRead this /.test(read(`docs/${page}`)));
  expect(others).toEqual([]);
});

test('docs/operations.md divides a core by the CPU in docs/evidence/benchmarks.md', () => {
  const benchmarks = read('docs/evidence/benchmarks.md');
  const twoDigits = (value: number) => {
    const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
    return (Math.floor(value / unit) * unit).toLocaleString('en');
  };
  const rows = [
    ...read('docs/operations.md').matchAll(
      /^\| [^|]+ \| `([\w-]+)` \| ([\d.]+) \| ([\d,]+) \| ([\d,]+) \|$/gm,
    ),
  ];
  expect(rows).toHaveLength(4);
  for (const [, name = '', cpu, full, half] of rows) {
    const [, section = ''] = benchmarks.split(`\n### ${name}\n`);
    const measured = Number.parseFloat(cellOf(section, 'gateway', 1));
    expect([Number(cpu), full, half]).toEqual([
      measured,
      twoDigits(1e6 / measured),
      twoDigits(5e5 / measured),
    ]);
  }
});

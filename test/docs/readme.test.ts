import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

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
        read('docs/fleet.md'),
      ) ?? [];
    expect(restarted).toBe('4');
    expect(README).toContain(`of ${Number(requests).toLocaleString('en')} requests ${failed} fail `);
  });

  test('reliability', () => {
    const [, table = ''] = /<!-- measured -->(.*?)<!-- end/s.exec(read('docs/reliability.md')) ?? [];
    const rows = table
      .split('\n')
      .filter((line) => /^\| .*\| \d+ \|/.test(line) && !line.startsWith('| none |'));
    const sumOf = (column: number) => rows.reduce((sum, row) => sum + Number(row.split('|')[column]), 0);
    expect(README).toContain(
      `${rows.length} faults, ${sumOf(2).toLocaleString('en')} requests: ${sumOf(3)} fails, on a replica that is killed`,
    );
    expect(cellOf(table, 'a replica is killed', 2)).toBe('1');
  });

  test('benchmarks', () => {
    const [, plain = ''] = /### plain\n(.*?)\n### /s.exec(read('docs/benchmarks.md')) ?? [];
    const cpuOf = (target: string) => Number.parseFloat(cellOf(plain, target, 1));
    const timesCpuOf = (target: string) => (cpuOf('gateway') / cpuOf(target)).toFixed(1);
    expect(README).toContain(`${timesCpuOf('envoy')} times Envoy's, ${timesCpuOf('smg')} times SMG's`);
  });
});

test("the README's pictures are there, and have words for those who do not see them", () => {
  const pictures = [...README.matchAll(/<img src="([^"]+)" alt="([^"]{20,})" width="\d+">/g)];
  expect(pictures).toHaveLength(README.split('<img').length - 1);
  expect(pictures.map(([, path = '']) => existsSync(join(ROOT, path)))).toEqual([true, true]);
});

test('every page is in the list of all pages, once', () => {
  const pages = readdirSync(join(ROOT, 'docs')).filter(
    (name) => name.endsWith('.md') && name !== 'README.md',
  );
  const listed = [...read('docs/README.md').matchAll(/^\d+\. \[[^\]]+\]\((\w[\w-]*\.md)\)/gm)].map(
    ([, name]) => name,
  );
  expect(listed.toSorted()).toEqual([...pages.filter((name) => name !== 'glossary.md')].toSorted());
});

test('docs/sizing.md divides a core by the CPU in docs/benchmarks.md', () => {
  const benchmarks = read('docs/benchmarks.md');
  const twoDigits = (value: number) => {
    const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
    return (Math.floor(value / unit) * unit).toLocaleString('en');
  };
  const rows = [
    ...read('docs/sizing.md').matchAll(/^\| [^|]+ \| `([\w-]+)` \| ([\d.]+) \| ([\d,]+) \| ([\d,]+) \|$/gm),
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

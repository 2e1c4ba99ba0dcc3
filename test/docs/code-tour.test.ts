import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

test('the code tour names what the files that it links to export', () => {
  const [, tour = ''] = /### One request through the code\n(.*?)\n##/s.exec(read('CONTRIBUTING.md')) ?? [];
  const stops = [...tour.matchAll(/\]\(((?:src|otel)\/[\w/-]+\.ts)\)([^[]*)/g)].map(
    ([, file = '', text = '']) => ({
      file,
      names: [...text.matchAll(/: `(\w+)`/g)].map(([, name = '']) => name),
    }),
  );
  expect(stops.length).toBeGreaterThan(10);
  const isExported = (file: string, name: string) =>
    new RegExp(`^export (?:async )?(?:function|class|type|interface) ${name}\\b`, 'm').test(read(file));
  const wrong = stops.flatMap(({ file, names }) => names.filter((name) => !isExported(file, name)));
  expect(wrong).toEqual([]);
  expect(stops.flatMap(({ names }) => names).length).toBeGreaterThan(10);
});

test('docs/internals/architecture.md has one row for each room, and none for others', () => {
  const { imports } = JSON.parse(read('package.json')) as { imports: Readonly<Record<string, string>> };
  const rooms = Object.entries(imports)
    .filter(([door]) => !door.endsWith('*'))
    .map(([door, file]) => `${dirname(join(file))} ${door}`);
  const rows = [...read('docs/internals/architecture.md').matchAll(/^\| `([\w/-]+)` \| `(#[\w/-]+)` \|/gm)];
  expect(rows.map(([, folder, door]) => `${folder} ${door}`).sort()).toEqual(rooms.sort());
});

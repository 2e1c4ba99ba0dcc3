import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { countDoors, countExports } from '../doors/count-doors.ts';

test('the exports of a door are counted by name, with types and constants', () => {
  const door = `export { a, type B } from './inner.ts';
export const c = 1;
export function d() {}
export interface E {}
const f = 2;`;
  expect(countExports(door)).toBe(5);
});

test('files imported past a door are found, but not those that a test of the room itself imports', async () => {
  const root = await temporaryFolder();
  const files = {
    'package.json':
      '{"imports": {"#a": "./src/a/a.ts", "#a/b": "./src/a/b/b.ts", "#testkit/*": "./testkit/*"}}',
    'layers.config.ts': 'one\ntwo\n',
    'src/a/a.ts':
      "export { inner } from './inner.ts';\nimport { b } from '#a/b';\nimport { deep } from './b/deep.ts';\n",
    'src/a/inner.ts': 'export const inner = 1;\n',
    'src/a/b/b.ts': "export { deep as b } from './deep.ts';\n",
    'src/a/b/deep.ts': 'export const deep = 1;\n',
    'test/a/inner.test.ts': "import { inner } from '../../src/a/inner.ts';\nimport 'node:fs';\n",
    'test/else.test.ts': "import { a } from '#a';\nimport { inner } from '../src/a/inner.ts';\n",
    'lab/main.ts': "const { deep } = await import('../src/a/b/deep.ts');\n",
  };
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(join(root, dirname(file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  expect(countDoors(root)).toEqual({
    rooms: [
      { door: '#a', file: 'src/a/a.ts', folder: 'src/a/', exportCount: 1 },
      { door: '#a/b', file: 'src/a/b/b.ts', folder: 'src/a/b/', exportCount: 1 },
    ],
    doors: ['src/a/b/b.ts', 'src/a/b/deep.ts'],
    reachingInside: [
      { from: 'lab/main.ts', to: 'src/a/b/deep.ts' },
      { from: 'test/else.test.ts', to: 'src/a/inner.ts' },
    ],
    lineCount: 6,
    layerLineCount: 2,
  });
});

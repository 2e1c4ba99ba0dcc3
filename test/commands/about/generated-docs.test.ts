import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { renderCommands } from '../../../scripts/generate-cli-docs.ts';
import { COMMAND_NAMES } from '../../../src/commands/command-line/command-table.ts';

const DOCS = join(import.meta.dirname, '../../../docs');
const read = (file: string) => readFileSync(join(DOCS, file), 'utf8');

test('docs/cli.md is what the table of commands makes', () => {
  expect(read('cli.md')).toBe(renderCommands());
});

test('every command that a document shows exists', () => {
  const shown = ['operations.md', 'rollouts.md', 'fleet.md', 'export-trace.md', '../README.md'].flatMap(
    (file) => {
      const text = read(file);
      const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block).join('');
      const called = [
        ...blocks.matchAll(/^gateway ([a-z][a-z-]*)/gm),
        ...text.matchAll(/`gateway ([a-z][a-z-]*)/g),
      ];
      return called.map(([, name = '']) => name);
    },
  );
  expect(shown.length).toBeGreaterThan(20);
  expect(shown.filter((name) => !COMMAND_NAMES.some((known) => known === name))).toEqual([]);
});

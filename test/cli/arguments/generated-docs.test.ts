import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS, isCommandName } from '#cli/arguments';
import { renderCommands } from '../../../scripts/generate/cli-docs.ts';

const DOCS = join(import.meta.dirname, '../../../docs');
const read = (file: string) => readFileSync(join(DOCS, file), 'utf8');

test('docs/cli.md is what the table of commands makes', () => {
  expect(read('cli.md')).toBe(renderCommands());
});

describe('what documents show of the command line exists:', () => {
  const files = [
    '../README.md',
    '../CHANGELOG.md',
    ...readdirSync(DOCS).filter((name) => name.endsWith('.md')),
  ];
  const shown = files.flatMap((file) => callsIn(read(file)).map((call) => ({ file, ...call })));

  test('commands', () => {
    expect(shown.length).toBeGreaterThan(80);
    expect(shown.filter(({ name }) => !isCommandName(name))).toEqual([]);
  });

  test('options', () => {
    const unknown = shown.filter(({ name, options }) => {
      const known: Readonly<Record<string, unknown>> = isCommandName(name) ? COMMANDS[name].options : {};
      return options.some((option) => option !== 'help' && !Object.hasOwn(known, option));
    });
    expect(shown.flatMap(({ options }) => options).length).toBeGreaterThan(40);
    expect(unknown).toEqual([]);
  });
});

/** The calls of commands in a document's shell blocks and code spans, with the long options of each. */
function callsIn(text: string): readonly { readonly name: string; readonly options: readonly string[] }[] {
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block);
  const spans = [...text.replace(/^```.*?^```/gms, '').matchAll(/`([^`]+)`/g)].map(([, span = '']) => span);
  const calls = [...blocks, ...spans]
    .join('\n')
    .matchAll(/(?:^|[&|(] ?)gateway ([a-z][a-z-]*)([^\n|;&#)]*)/gm);
  return [...calls].map(([, name = '', rest = '']) => ({
    name,
    options: [...rest.matchAll(/ --([a-z-]+)/g)].map(([, option = '']) => option),
  }));
}

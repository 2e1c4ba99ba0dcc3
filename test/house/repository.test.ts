import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
/** This file spells out what no other may contain. */
const THIS_FILE = 'test/house/repository.test.ts';

const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
  cwd: ROOT,
  encoding: 'utf8',
});
const FILES = listed.split('\0').filter((file) => file !== '' && existsSync(join(ROOT, file)));
const TEXTS = new Map(
  FILES.filter((file) => file !== THIS_FILE && !file.endsWith('.png')).map((file) => [
    file,
    readFileSync(join(ROOT, file), 'utf8'),
  ]),
);

/** Every line of the files chosen that matches, as `file:line: text`. */
function matches(pattern: RegExp, isChosen: (file: string) => boolean): readonly string[] {
  return [...TEXTS]
    .filter(([file]) => isChosen(file))
    .flatMap(([file, text]) =>
      text
        .split('\n')
        .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
    );
}

const isAnyFile = () => true;
const isOwnText = (file: string) => file !== 'package-lock.json';
const isCode = (file: string) => /\.[jt]s$/.test(file);

describe('the repository', () => {
  test('names no path of the machine it was written on', () => {
    expect(matches(/(?:^|[\s"'`(=:])\/(?:work|home|root|Users)\/\w/, isOwnText)).toEqual([]);
  });

  test('writes the members of an object one by one: a spread that only groups them hides them', () => {
    // There it lets members pass that a type does not have.
    const isFree = (file: string) => isCode(file) && !file.startsWith('lab/llama/');
    expect(matches(/\.\.\.\{ ?[\w'"]/, isFree)).toEqual([]);
  });

  test('names no registry in its lock file, so that it installs from any', () => {
    expect(matches(/"resolved":/, (file) => file === 'package-lock.json')).toEqual([]);
  });

  test('names in its lock file no Node of other packages, about which an older npm would print a page of warnings', () => {
    const { packages } = JSON.parse(TEXTS.get('package-lock.json') ?? '{}');
    const demanding = Object.entries<object>(packages).filter(([, entry]) => 'engines' in entry);
    expect(demanding.map(([path]) => path)).toEqual(['']); // `npm run generate` takes the others out
  });

  test('locks the packages of every platform, so that it installs on any', () => {
    const { packages } = JSON.parse(TEXTS.get('package-lock.json') ?? '{}');
    const locked = new Set(Object.keys(packages).map((path) => path.split('node_modules/').at(-1)));
    const named = Object.values<{ optionalDependencies?: object }>(packages).flatMap((entry) =>
      Object.keys(entry.optionalDependencies ?? {}),
    );
    // npm leaves them out of a lock file that it writes beside an installed node_modules (npm/cli#4828).
    expect(named.filter((name) => !locked.has(name))).toEqual([]);
  });

  test('leaves nothing for later in a comment', () => {
    expect(matches(/\b(?:TODO|FIXME|XXX|HACK)\b/, isAnyFile)).toEqual([]);
  });

  test('silences neither the types nor the linter without saying why', () => {
    expect(matches(/\bas any\b|@ts-ignore|@ts-nocheck|biome-ignore(?:-\w+)? [\w/]+:?\s*$/, isCode)).toEqual(
      [],
    );
  });

  test('runs every test it has', () => {
    expect(matches(/\b(?:test|it|describe)\.only\b/, isCode)).toEqual([]);
  });

  test('links from its documents only to files that exist', () => {
    const broken = FILES.filter((file) => file.endsWith('.md')).flatMap((file) =>
      [...(TEXTS.get(file) ?? '').matchAll(/\]\((?!https?:|mailto:|#)([^)#\s]+)/g)]
        .map(([, target = '']) => target)
        .filter((target) => !existsSync(join(ROOT, dirname(file), target)))
        .map((target) => `${file}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  test('pins every dependency to one version', () => {
    const manifest = JSON.parse(TEXTS.get('package.json') ?? '{}');
    const versions = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });
    expect(
      versions.filter(([, version]) => !/^(?:npm:@?[\w/-]+@)?\d+\.\d+\.\d+$/.test(String(version))),
    ).toEqual([]);
  });
});

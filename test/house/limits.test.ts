import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { toConfigJsonSchema } from '#testkit/config-json-schema.ts';
import { toSourceName } from '#testkit/limits/limit.ts';
import { LIMITS } from '#testkit/limits/limits.ts';
import { NOT_LIMITS } from '#testkit/limits/not-limits.ts';
import { renderLimits } from '../../scripts/generate/limits-docs.ts';

const ROOT = join(import.meta.dirname, '../..');
const ROWS = new Set(LIMITS.flatMap(({ limits }) => limits.map(({ source }) => toSourceName(source))));
const OTHERS = Object.values(NOT_LIMITS).flat();

const CONSTANTS = globSync('{src,otel}/**/*.ts', { cwd: ROOT }).flatMap((file) => {
  const names = readFileSync(join(ROOT, file), 'utf8').matchAll(
    /^(?:export )?const ((?:DEFAULT_)?MAX_[A-Z_]+)\b/gm,
  );
  return [...names].map(([, name]) => `${file}#${name}`);
});

describe('the table of limits', () => {
  test('has every constant of the code that is a limit, and says of the others what they are', () => {
    const isKnown = (name: string) =>
      ROWS.has(name) ||
      OTHERS.some((other) => other === name || (other.endsWith('/') && name.startsWith(other)));
    expect(CONSTANTS.filter((name) => !isKnown(name))).toEqual([]);
  });

  test('has no constant that is gone, and none twice', () => {
    const named = OTHERS.filter((name) => !name.endsWith('/'));
    expect(named.filter((name) => !CONSTANTS.includes(name) || ROWS.has(name))).toEqual([]);
  });

  test('has every key of `limits` and `timeouts`', () => {
    const { properties = {} } = toConfigJsonSchema();
    const keys = ['limits', 'timeouts'].flatMap((section) =>
      Object.keys((properties[section] as { properties: object }).properties).map(
        (name) => `${section}.${name}`,
      ),
    );
    expect(keys.filter((key) => !ROWS.has(key))).toEqual([]);
  });

  test('names only tests that are there', () => {
    const missing = LIMITS.flatMap(({ limits }) => limits).filter(({ proof }) => {
      if (!('test' in proof)) return false;
      const path = join(ROOT, proof.test);
      return !existsSync(path) || !readFileSync(path, 'utf8').includes(proof.name);
    });
    expect(missing.map(({ proof }) => proof)).toEqual([]);
  });

  test('is docs/limits.md', () => {
    expect(
      readFileSync(join(ROOT, 'docs/limits.md'), 'utf8'),
      'run node scripts/generate/limits-docs.ts',
    ).toBe(renderLimits());
  });
});

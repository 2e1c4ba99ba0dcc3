import { describe, test } from 'vitest';
import { expectNamedOnce, putBytes, REVISIONS } from './foreign-data.ts';

describe.concurrent('foreign data in the shared state', () => {
  test.each([
    ['a field', ['hset', REVISIONS, 'foo', '1'], `${REVISIONS} foo`],
    ['a field named like a part of every object', ['hset', REVISIONS, '__proto__', '1'], '__proto__'],
    ['a field named like a method of every object', ['hset', REVISIONS, 'constructor', '1'], 'constructor'],
    ['a field that is not text', putBytes(REVISIONS, `'\\255\\254'`, `'1'`), `${REVISIONS} `],
  ])('%s is named once, and drains propagate as before', (_, words, name) => expectNamedOnce(words, name));
});

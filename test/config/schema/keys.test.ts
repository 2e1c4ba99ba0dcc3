import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { duration, oneOrMore, percent, size, time, wholeNumber } from '../../../src/config/schema/codecs.ts';
import { facts, factsOf, mapValues, RELOADED, section } from '../../../src/config/schema/keys.ts';
import { oneLine, path } from '../../../src/config/schema/names.ts';

const SECTION = section({
  first_byte: duration().prefault('1m'),
  queue_bytes: size().optional(),
  max_failing: percent(1, 99).optional(),
  ends: time().optional(),
  max_names: wholeNumber(0, 10).nullable().prefault(null),
  names: oneOrMore(oneLine, 'names').optional(),
  inner: section({ file_path: path(), key: oneLine() }).optional(),
  rest: z.array(section({ path: path() })).prefault([]),
});

describe('a section', () => {
  test('becomes settings in camel case, with the unit of a value at the end of its name unless it is there', () => {
    const given = {
      queue_bytes: '1KiB',
      max_failing: '5%',
      ends: '2027-01-31T00:00:00Z',
      max_names: '3',
      names: 'a',
      inner: { file_path: 'p', key: 'k' },
      rest: [{ path: 'q' }],
    };
    const settings = {
      firstByteMs: 60_000,
      queueBytes: 1024,
      maxFailingShare: 0.05,
      endsAtMs: Date.UTC(2027, 0, 31),
      maxNames: 3,
      names: ['a'],
      inner: { filePath: 'p', key: 'k' },
      rest: [{ path: 'q' }],
    };
    expect(SECTION.parse(given)).toEqual(settings);
    expect(z.encode(SECTION, SECTION.parse(given))).toEqual({ ...given, first_byte: '1m', max_names: 3 });
  });

  test('has null for a key that is not set, which is left out when it is written again', () => {
    const settings = SECTION.parse({});
    expect(settings).toEqual({
      firstByteMs: 60_000,
      queueBytes: null,
      maxFailingShare: null,
      endsAtMs: null,
      maxNames: null,
      names: null,
      inner: null,
      rest: [],
    });
    expect(z.encode(SECTION, settings)).toEqual({ first_byte: '1m', max_names: null, rest: [] });
  });

  test('has no keys that the schema does not name', () => {
    expect(SECTION.safeParse({ first: 1 }).error?.issues).toMatchObject([{ code: 'unrecognized_keys' }]);
  });
});

test('values are changed by what their keys hold, in lists and sections too', () => {
  const settings = SECTION.parse({ inner: { file_path: 'p', key: 'k' }, rest: [{ path: 'q' }] });
  const changed = mapValues(SECTION, settings, (value, { holds }) =>
    holds === 'path' ? `/${value}` : value,
  );
  expect(changed).toEqual({
    ...settings,
    inner: { filePath: '/p', key: 'k' },
    rest: [{ path: '/q' }],
  });
});

test('facts stay with a key, whatever is said of it before and after', () => {
  const key = duration().optional().register(facts, RELOADED).describe('How long.');
  expect(factsOf(key)).toEqual({ unit: 'Ms', isReloaded: true });
});

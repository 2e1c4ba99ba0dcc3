import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseTraceparent, parseTracestate } from '../../../otel/span/incoming-context.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('a traceparent', () => {
  test.each([
    [`00-${TRACE}-${SPAN}-01`, 1],
    [`00-${TRACE}-${SPAN}-00`, 0],
    [`00-${TRACE}-${SPAN}-03`, 3],
    [`cc-${TRACE}-${SPAN}-01`, 1],
    [`cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`, 1],
  ])('%s is valid', (text, traceFlags) => {
    expect(parseTraceparent(text)).toEqual({ traceId: TRACE, spanId: SPAN, traceFlags, isRemote: true });
  });

  test.each([
    '',
    'garbage',
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-001`,
    `00-${TRACE}-${SPAN}-0G`,
    `00-${TRACE}-${SPAN}-01-extra`,
    `00-${TRACE}-${SPAN}-01.`,
    `cc-${TRACE}-${SPAN}-01.what`,
    `ff-${TRACE}-${SPAN}-01`,
    `0-${TRACE}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}0-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    `cc-${TRACE}-${SPAN}-01-a, cc-${TRACE}-${SPAN}-01`,
    '-'.repeat(100_000),
  ])('case %# is not valid', (text) => {
    expect(parseTraceparent(text)).toBeNull();
  });
});

const members = (count: number) => Array.from({ length: count }, (_, index) => `k${index}=v`);
const large = (key: string) => `${key}=${'v'.repeat(128)}`;

describe('a tracestate', () => {
  test.each([
    ['foo=1', 'foo=1'],
    ['foo=1,bar=2', 'foo=1,bar=2'],
    [' foo=1 \t,\tbar=2 ', 'foo=1,bar=2'],
    ['foo=1,,bar=2,', 'foo=1,bar=2'],
    ['fw529a3039@dt=FfAAAAA', 'fw529a3039@dt=FfAAAAA'],
    ['0_-*/a=!~ x', '0_-*/a=!~ x'],
    ['foo=1,bar=2,foo=3', 'foo=1,bar=2'],
    [`${'k'.repeat(256)}=1`, `${'k'.repeat(256)}=1`],
    [members(32).join(), members(32).join()],
  ])('%s is passed on', (text, passed) => {
    expect(parseTracestate(text)).toBe(passed);
  });

  test.each([
    '',
    ' , ',
    'foo',
    '=1',
    'foo=',
    'foo=1=2',
    'Foo=1',
    'fo o=1',
    'foo =1',
    'foo=\u00e9',
    'foo=a\u0000',
    '_foo=1',
    `${'k'.repeat(257)}=1`,
    `foo=${'v'.repeat(257)}`,
    'foo=1,bad',
    members(33).join(),
    '='.repeat(100_000),
  ])('case %# is not valid', (text) => {
    expect(parseTracestate(text)).toBeUndefined();
  });

  test('of more than 512 characters loses large members first, then the last ones', () => {
    expect(parseTracestate([large('x'), 'a=1', large('y'), large('z'), large('u')].join())).toBe('a=1');
    const fitting = Array.from({ length: 10 }, (_, index) => `k${index}=${'v'.repeat(100)}`);
    expect(parseTracestate(fitting.join())).toBe(fitting.slice(0, 4).join());
  });

  test('is at most 512 characters of printable ASCII, whatever came', () => {
    const text = fc.oneof(
      fc.string(),
      fc.array(fc.stringMatching(/^[a-z]{1,9}=[ -~]{1,200}$/), { maxLength: 40 }).map((all) => all.join()),
    );
    fc.assert(
      fc.property(text, (value) => {
        const passed = parseTracestate(value);
        if (passed === undefined) return;
        expect(passed).toMatch(/^[ -~]{1,512}$/);
        expect(parseTracestate(passed)).toBe(passed);
      }),
    );
  });
});

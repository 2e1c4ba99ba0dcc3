import { expect, test } from 'vitest';
import { toErrorJson, toShownText } from '#wire';

test.each([
  [400, 'invalid_request_error'],
  [499, 'invalid_request_error'],
  [500, 'server_error'],
  [503, 'server_error'],
])('an error with %i says whose fault it is', (status, type) => {
  expect(JSON.parse(toErrorJson({ status, code: 'c', message: 'm' }))).toEqual({
    error: { message: 'm', type, param: null, code: 'c' },
  });
});

test('an error has the type and the parameter that it is given', () => {
  const given = { status: 400, code: 'c', message: 'm', type: 't', param: 'p' };
  expect(JSON.parse(toErrorJson(given))).toEqual({
    error: { message: 'm', type: 't', param: 'p', code: 'c' },
  });
  expect(toErrorJson({ ...given, param: undefined })).toContain('"param":null');
});

test.each([
  ['/v1/x', '`/v1/x`'],
  ['a`b', "`a'b`"],
  ['a\n\u0000\u202eb', '`a\u{FFFD}\u{FFFD}\u{FFFD}b`'],
  ['x'.repeat(128), `\`${'x'.repeat(128)}\``],
  ['x'.repeat(129), `\`${'x'.repeat(128)}…\``],
])('a text of a request is shown on one line, cut if it is long: %j', (text, shown) => {
  expect(toShownText(text)).toBe(shown);
});

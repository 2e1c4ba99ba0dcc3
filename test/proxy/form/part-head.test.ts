import { expect, test } from 'vitest';
import { parseBoundary } from '../../../src/proxy/form/part-head.ts';

test.each([
  ['multipart/form-data; boundary=abc', 'abc'],
  ['multipart/form-data;boundary="a b:c"', 'a b:c'],
  ["multipart/form-data;  boundary=a'+_.b-", "a'+_.b-"],
  [
    'multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW',
    '----WebKitFormBoundary7MA4YWxkTrZu0gW',
  ],
  ['multipart/form-data', null],
  ['multipart/form-data; boundary=', null],
  ['multipart/form-data; boundary=""', null],
  ['multipart/form-data; boundary="a "', null],
  // Each of these was read differently by cpp-httplib, Starlette or both.
  ['multipart/form-data; charset=utf-7; boundary=abc', null],
  ['multipart/form-data; boundary=abc; charset=utf-8', null],
  ['multipart/form-data; q="; boundary=y; z="; boundary=abc', null],
  ["multipart/form-data; boundary*=utf-8''y; boundary=abc", null],
  ['multipart/form-data; boundary=abc; boundary*0=y', null],
  ['multipart/form-data; boundary="a=b"', null],
  ['multipart/form-data; boundary="a\\b"', null],
  ['multipart/form-data; Boundary=abc', null],
  ['Multipart/form-data; boundary=abc', null],
  ['multipart/form-data; boundary=abc;', null],
  ['multipart/form-data;\tboundary=abc', null],
  ['multipart/form-data; boundary=a; boundary=b', null],
  ['multipart/form-data; boundary=a, multipart/form-data; boundary=b', null],
  [`multipart/form-data; boundary=${'a'.repeat(71)}`, null],
  ['multipart/form-data; boundary="a\r\nb"', null],
  ['multipart/form-dataX; boundary=a', null],
  ['multipart/mixed; boundary=a', null],
  ['application/json', null],
  [undefined, null],
])('the boundary of %j is %j', (contentType, boundary) => {
  expect(parseBoundary(contentType)).toBe(boundary);
});

import { expect, test } from 'vitest';
import { parseBoundary } from '../../../src/proxy/form/part-head.ts';

test.each([
  ['multipart/form-data; boundary=abc', 'abc'],
  ['multipart/form-data;boundary="a b:c"', 'a b:c'],
  ['Multipart/Form-Data ; charset=utf-8; Boundary=abc', 'abc'],
  [
    'multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW',
    '----WebKitFormBoundary7MA4YWxkTrZu0gW',
  ],
  ['multipart/form-data', null],
  ['multipart/form-data; boundary=', null],
  ['multipart/form-data; boundary=""', null],
  ['multipart/form-data; boundary="a "', null],
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

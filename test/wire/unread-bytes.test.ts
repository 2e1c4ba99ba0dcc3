import { expect, test } from 'vitest';
import { UnreadBytes } from '../../src/wire/unread-bytes.ts';

test('bytes are the same in pieces of any size', () => {
  const unread = new UnreadBytes();
  const whole = Buffer.from(Array.from({ length: 5_000 }, (_, index) => index % 251));
  for (const size of [1, 2, 3, 100, 2_000]) {
    for (let at = 0; at < whole.length; at += size) unread.append(whole.subarray(at, at + size));
    expect(unread.length).toBe(whole.length);
    expect(unread.takeAll().equals(whole)).toBe(true);
    expect(unread.length).toBe(0);
  }
});

test('a view does not change when bytes are appended', () => {
  const unread = new UnreadBytes();
  for (const piece of ['one', 'two']) unread.append(Buffer.from(piece));
  const view = unread.view();
  unread.append(Buffer.from('three'));
  expect(view.toString()).toBe('onetwo');
  unread.clear();
  unread.append(Buffer.from('x'));
  unread.append(Buffer.from('y'));
  expect(view.toString()).toBe('onetwo');
  expect(unread.takeAll().toString()).toBe('xy');
});

test('a single read is not copied', () => {
  const read = Buffer.from('read');
  const unread = new UnreadBytes();
  unread.append(read);
  expect([unread.view(), unread.takeAll()]).toEqual([read, read]);
  unread.append(read);
  expect(unread.view()).toBe(read);
});

test('the memory of a read is never written to', () => {
  const memory = Buffer.from('head|rest');
  const unread = new UnreadBytes();
  for (const piece of ['one', 'two']) unread.append(Buffer.from(piece));
  unread.clear();
  unread.append(memory.subarray(0, 4));
  unread.append(Buffer.from('!!'));
  expect(memory.toString()).toBe('head|rest');
});

import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Outbox } from '../../src/proxy/outbox.ts';

/** What was sent, by name, in its order. */
function createOutbox() {
  const outbox = new Outbox((error) => {
    throw error;
  });
  const sent: string[] = [];
  const add = (name: string, then?: () => void) => {
    const sendOut = () => {
      sent.push(name);
      then?.();
    };
    outbox.add({ sendOut });
  };
  return { outbox, add, sent };
}

test('what was added in a turn is sent when the turn is over, in its order', async () => {
  const { add, sent } = createOutbox();
  add('a');
  await Promise.resolve();
  add('b');
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(sent).toEqual([]);
  await nextTurn();
  expect(sent).toEqual(['a', 'b']);
  add('c');
  await nextTurn();
  expect(sent).toEqual(['a', 'b', 'c']);
});

test('32 are sent at once', async () => {
  const { add, sent } = createOutbox();
  const names = Array.from({ length: 33 }, (_, index) => String(index));
  for (const name of names) add(name);
  expect(sent).toEqual(names.slice(0, 32));
  await nextTurn();
  expect(sent).toEqual(names);
});

test('what is added while others are sent is sent after them, once', async () => {
  const { outbox, add, sent } = createOutbox();
  add('a', () => add('c'));
  add('b');
  outbox.flush();
  expect(sent).toEqual(['a', 'b']);
  await nextTurn();
  expect(sent).toEqual(['a', 'b', 'c']);
});

test('what was sent before its time is not sent again', async () => {
  const { outbox, add, sent } = createOutbox();
  outbox.flush();
  add('a');
  outbox.flush();
  expect(sent).toEqual(['a']);
  await nextTurn();
  expect(sent).toEqual(['a']);
});

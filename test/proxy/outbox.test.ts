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

test('one that fails is reported and does not stop the others', () => {
  const failures: unknown[] = [];
  const sent: string[] = [];
  const outbox = new Outbox((error) => failures.push(error));
  const failure = new Error('no');
  outbox.add({
    sendOut: () => {
      throw failure;
    },
  });
  outbox.add({ sendOut: () => void sent.push('b') });
  outbox.flush();
  expect(failures).toEqual([failure]);
  expect(sent).toEqual(['b']);
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

test('what was flushed early is not sent again', async () => {
  const { outbox, add, sent } = createOutbox();
  outbox.flush();
  add('a');
  outbox.flush();
  expect(sent).toEqual(['a']);
  await nextTurn();
  expect(sent).toEqual(['a']);
});

import { expect, test } from 'vitest';
import { RequestBody } from '../../../src/wire/client/request-body.ts';

/** A body of ten bytes, and what its sink is told. */
function open() {
  const body = new RequestBody();
  const told: string[] = [];
  const sink = {
    onData: (view: Buffer) => void told.push(view.toString()),
    onEnd: () => void told.push('end'),
    onTimeout: () => void told.push('timeout'),
  };
  expect(body.state).toBe('done');
  body.start({ kind: 'length', bytes: 10 });
  expect([body.state, body.isComplete]).toEqual(['unclaimed', false]);
  return { body, sink, told };
}

const read = (body: RequestBody, text: string) => body.read(Buffer.from(text));

test('a body that is claimed goes to its sink, which is told by the owner when it is done', () => {
  const { body, sink, told } = open();
  body.claim(sink);
  expect(body.state).toBe('claimed');
  expect(read(body, '12345')).toBe(5);
  expect(body.isComplete).toBe(false);
  expect(read(body, '67890GET')).toBe(5);
  expect([body.isComplete, body.discardedBytes]).toEqual([true, 0]);
  expect(body.finish()).toBe(sink);
  expect([told, body.state, body.finish()]).toEqual([['12345', '67890'], 'done', null]);
});

test('a body that is discarded is counted, and has no sink at its end', () => {
  const { body, sink, told } = open();
  body.claim(sink);
  read(body, '123');
  body.discard();
  expect(body.state).toBe('discarded');
  read(body, '4567890');
  expect([body.discardedBytes, body.finish(), body.state, told]).toEqual([7, null, 'done', ['123']]);
});

test('a body that is stopped returns its sink once; what comes is only counted', () => {
  const { body, sink, told } = open();
  expect(body.stop()).toBeNull();
  body.claim(sink);
  expect(body.stop()).toBe(sink);
  expect([body.stop(), body.state]).toEqual([null, 'stopped']);
  body.countDiscarded(3);
  body.countDiscarded(4);
  expect([body.discardedBytes, told]).toEqual([7, []]);
});

test('each request begins anew, and one without a body is done at once', () => {
  const { body, sink, told } = open();
  body.claim(sink);
  body.countDiscarded(3);
  body.start({ kind: 'length', bytes: 2 });
  expect([body.state, body.discardedBytes]).toEqual(['unclaimed', 0]);
  expect(body.stop()).toBeNull();
  body.start({ kind: 'none' });
  expect([body.state, body.isComplete, told]).toEqual(['done', true, []]);
});

import { expect, test } from 'vitest';
import { Upload, type UploadTarget } from '../../../src/proxy/attempt/upload.ts';

const SETTINGS = { maxBytes: 100, timeoutMs: 1000 };

/** A client and a replica that only write down what happens. The replica takes bytes as long as `canTake`. */
function open(kind: 'length' | 'chunked') {
  const steps: string[] = [];
  const note = (step: string) => () => void steps.push(step);
  const framing = kind === 'length' ? { kind, bytes: 10 } : { kind };
  const client = {
    readBody: note('read'),
    stopReadingBody: note('stop'),
    pauseReading: note('pause'),
    resumeReading: note('resume'),
  };
  const target: UploadTarget & { canTake: boolean } = {
    canTake: true,
    onDrain: null,
    writeBody(before, piece, after) {
      steps.push(JSON.stringify(before + piece.toString() + after));
      return this.canTake;
    },
    endBody: (last) => void steps.push(`end ${JSON.stringify(last)}`),
  };
  const upload = new Upload(client, framing, SETTINGS);
  return { upload, target, steps, start: () => upload.start(target, (code) => void steps.push(code)) };
}

test('a body goes to the replica as it comes, and in the framing in which it comes', () => {
  for (const [kind, expected] of [
    ['length', ['read', '"abc"', '"d"', 'end ""']],
    ['chunked', ['read', '"3\\r\\nabc\\r\\n"', '"1\\r\\nd\\r\\n"', 'end "0\\r\\n\\r\\n"']],
  ] as const) {
    const { upload, steps, start } = open(kind);
    start();
    upload.onData(Buffer.from('abc'));
    upload.onData(Buffer.from('d'));
    expect(upload.isComplete).toBe(false);
    upload.onEnd();
    expect(upload.isComplete).toBe(true);
    expect(steps).toEqual(expected);
  }
});

test('the client is paused while the replica takes no more', () => {
  const { upload, target, steps, start } = open('length');
  start();
  target.canTake = false;
  upload.onData(Buffer.from('abc'));
  expect(steps.splice(0)).toEqual(['read', '"abc"', 'pause']);
  target.canTake = true;
  target.onDrain?.();
  upload.onData(Buffer.from('d'));
  expect(steps).toEqual(['resume', '"d"']);
});

test('the client is read again once where the replica takes more before the end', () => {
  const { upload, target, steps, start } = open('chunked');
  start();
  target.canTake = false;
  upload.onData(Buffer.from('0123456789abcdef'));
  target.onDrain?.();
  upload.onTimeout();
  expect(steps).toEqual([
    ...['read', '"10\\r\\n0123456789abcdef\\r\\n"', 'pause', 'resume', 'stop', 'request_timeout'],
  ]);
  const whole = open('length');
  whole.start();
  whole.target.canTake = false;
  whole.upload.onData(Buffer.from('abc'));
  whole.target.onDrain?.();
  whole.upload.onEnd();
  expect(whole.steps).toEqual(['read', '"abc"', 'pause', 'resume', 'end ""']);
});

test('a body may be as long as the limit', () => {
  const { upload, steps, start } = open('length');
  start();
  upload.onData(Buffer.alloc(60, 'a'));
  upload.onData(Buffer.alloc(40, 'b'));
  upload.onEnd();
  expect(steps.at(-1)).toBe('end ""');
  upload.stop();
  upload.onTimeout();
  expect([steps.at(-1), upload.isComplete]).toEqual(['end ""', true]);
});

test('the client is read again when its body is complete, so that its leaving is seen', () => {
  const { upload, target, steps, start } = open('length');
  start();
  target.canTake = false;
  upload.onData(Buffer.from('abc'));
  upload.onEnd();
  expect(steps).toEqual(['read', '"abc"', 'pause', 'end ""', 'resume']);
});

test('a body that is too large, or too slow, ends once and with its reason', () => {
  const large = open('chunked');
  large.start();
  large.upload.onData(Buffer.alloc(101));
  large.upload.onData(Buffer.alloc(1));
  large.upload.onEnd();
  expect(large.steps).toEqual(['read', 'stop', 'request_too_large']);

  const slow = open('length');
  slow.start();
  slow.upload.onTimeout();
  slow.upload.onTimeout();
  expect(slow.steps).toEqual(['read', 'stop', 'request_timeout']);

  const blocked = open('length');
  blocked.start();
  blocked.target.canTake = false;
  blocked.upload.onData(Buffer.from('a'));
  blocked.upload.onTimeout();
  expect(blocked.steps).toEqual(['read', '"a"', 'pause', 'stop', 'upstream_timeout']);
});

test('nothing happens after a stop, and a stop before the start leaves the body for another replica', () => {
  const { upload, steps, start } = open('length');
  upload.stop();
  start();
  upload.stop();
  upload.onData(Buffer.from('abc'));
  upload.onEnd();
  expect(steps).toEqual(['read', 'stop']);
  expect(upload.isComplete).toBe(false);
});

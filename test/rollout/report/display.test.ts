import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import type { Invocation } from '#cli/command';
import { EventLog } from '#testkit/event-log.ts';
import { createDisplay } from '../../../src/rollout/report/create-reporter.ts';

/** A display of `a` and `b`, and what it has written. */
function setUp(readLine: () => Promise<string | null> = async () => null, columns = 80) {
  const written = new EventLog<string>();
  const stdout = { write: (text: string) => written.push(text), isTTY: true, columns, rows: 24 };
  const invocation = { stdout, stdin: Readable.from([]), env: { NO_COLOR: '1' } } as unknown as Invocation;
  const display = createDisplay(invocation, ['a', 'b'], readLine);
  onTestFinished(() => display.end());
  return { display, stdout, written };
}

test('what is said at the end of a rollout stands below its replicas', () => {
  const { display, written } = setUp();
  display.show('a', 'stopped', 'is drained');
  display.end();
  display.say('0 of 2 replicas done. To go on: gateway rollout --resume');
  expect(written.items.at(-1)).toBe('0 of 2 replicas done. To go on: gateway rollout --resume\n');
  expect(written.items.at(-2)).toContain('is drained');
});

test('a question stays below the replicas while another one goes on', () => {
  const { display, written } = setUp(() => new Promise(() => {}));
  void display.ask('a is safe to stop. Restart it, then press Enter.');
  display.show('b', 'draining', 'is drained, 3 in flight');
  expect(written.items.at(-1)).toMatch(/3 in flight\na is safe to stop\. Restart it, then press Enter\. $/);
});

test('the time goes on after an answer', async () => {
  // With real timers: a fake one that was cleared can be refreshed, a real one cannot.
  const { display, written } = setUp(async () => '');
  display.show('a', 'restarting', 'is safe to stop');
  await display.ask('Restart it');
  display.show('a', 'starting', 'waits until the engine answers');
  await written.until(() =>
    /(?!0:00)\d+:\d\d {2}waits until the engine answers/.test(written.items.at(-1) ?? ''),
  );
});

test('a line of the command is not cut', () => {
  const { display, written } = setUp(undefined, 40);
  const line = `error: ${'x'.repeat(100)} the end`;
  display.output('a', line);
  expect(written.items.at(-1)).toContain(`a | ${line}\n`);
});

test('a terminal that has become narrower is cleared from the first replica on', () => {
  const { display, stdout, written } = setUp();
  display.show('a', 'stopped', 'x'.repeat(60));
  stdout.columns = 40;
  display.show('b', 'ramp', 'serves');
  // Two lines of the first replica, one of the second.
  expect(written.items.at(-1)?.startsWith('\u001b[3F\u001b[J')).toBe(true);
});

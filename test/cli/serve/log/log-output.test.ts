import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { LogOutput, type LogTarget, toLogTarget } from '../../../../src/cli/serve/log/log-output.ts';
import { createTextFormat } from '../../../../src/cli/serve/log/text-line.ts';

const MIB = 1024 * 1024;

/** A target whose next writes take this many bytes and then fail; without more they succeed. */
class ScriptedTarget implements LogTarget {
  text = '';
  waitingBytes = 0;
  readonly isTTY = false;
  readonly room: number[] = [];

  write(bytes: Buffer, start: number): number {
    const room = this.room.shift();
    if (room === 0) throw Object.assign(new Error('no room'), { code: 'ENOSPC' });
    const piece = bytes.subarray(start, room === undefined ? undefined : start + room);
    this.text += piece.toString();
    return piece.length;
  }
}

function createOutput() {
  const target = new ScriptedTarget();
  const told: string[] = [];
  return { target, told, output: new LogOutput(target, (line) => told.push(JSON.parse(line))) };
}

const lostLine = expect.objectContaining({ level: 'warn', msg: 'lines of the log were lost' });

test('what a full disk does not take is told once when it begins, and counted when there is room again', () => {
  const { target, told, output } = createOutput();
  output.write('{"n":1}\n');
  target.room.push(0, 0, 0);
  for (const n of [2, 3, 4]) output.write(`{"n":${n}}\n`);
  output.write('{"n":5}\n');
  const lines = target.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toEqual([{ n: 1 }, lostLine, { n: 5 }]);
  expect(lines[1]).toMatchObject({ lines: 3, reason: 'ENOSPC' });
  expect(told).toEqual([expect.objectContaining({ level: 'error', reason: 'ENOSPC' })]);
  expect(output.loss).toEqual({ lost: 3, reason: 'ENOSPC' });
});

test('what it says of itself has the format of the log, here and on standard error', () => {
  const target = new ScriptedTarget();
  const told: string[] = [];
  const output = new LogOutput(target, (line) => told.push(line));
  output.formatOwnLines(createTextFormat());
  target.room.push(0);
  output.write('one\n');
  output.write('two\n');
  expect(target.text).toMatch(/^\S+Z WARN {2}lines of the log were lost lines=1 reason=ENOSPC\ntwo\n$/);
  expect(told.join()).toMatch(/^\S+Z ERROR the log cannot be written: .* reason=ENOSPC\n$/);
});

test('a reader that is far behind loses lines until it has caught up with half of them', () => {
  const { target, output } = createOutput();
  target.waitingBytes = 4 * MIB + 1;
  output.write('{"n":1}\n');
  target.waitingBytes = 3 * MIB;
  output.write('{"n":2}\n');
  expect(target.text).toBe('');
  target.waitingBytes = 2 * MIB;
  output.write('{"n":3}\n');
  expect(JSON.parse(target.text.split('\n')[0] ?? '')).toMatchObject({ lines: 2, reason: 'reader_is_slow' });
  expect(target.text).toMatch(/\n\{"n":3\}\n$/);
});

test('a pipe whose reader does not read takes 4 MiB of memory, and says what it lost when it is read', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  const [reader] = (await once(server, 'connection')) as [Socket];
  const output = new LogOutput(toLogTarget(socket, -1), () => undefined);
  const line = `${JSON.stringify({ pad: 'x'.repeat(1000) })}\n`;
  const count = 50_000;
  for (let n = 0; n < count; n++) output.write(line);
  expect(socket.writableLength).toBeGreaterThan(3 * MIB);
  expect(socket.writableLength).toBeLessThan(5 * MIB);
  let received = '';
  reader.setEncoding('utf8').on('data', (piece: string) => {
    received += piece;
  });
  await expect.poll(() => socket.writableLength).toBe(0);
  output.write('{"n":"last"}\n');
  await expect.poll(() => received).toContain('"last"');
  const lines = received
    .trimEnd()
    .split('\n')
    .map((each) => JSON.parse(each));
  expect(lines.at(-2)).toEqual(lostLine);
  expect(lines.at(-2).lines + lines.length - 2).toBe(count);
});

test('however writes fail, each line is there or counted, and half of one never touches the next', () => {
  const rooms = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 60 });
  fc.assert(
    fc.property(rooms, fc.integer({ min: 1, max: 30 }), (room, count) => {
      const { target, output } = createOutput();
      target.room.push(...room);
      for (let n = 0; n < count; n++) output.write(`{"n":${n}}\n`);
      target.room.length = 0;
      output.write('{"n":"last"}\n');
      const lines = target.text.trimEnd().split('\n');
      const whole = lines.flatMap((line) => {
        try {
          return [JSON.parse(line) as { n?: number | string; lines?: number }];
        } catch {
          return [];
        }
      });
      const lost = whole.reduce((sum, line) => sum + (line.lines ?? 0), 0);
      const shown = whole.filter((line) => line.n !== undefined);
      expect(shown.at(-1)).toEqual({ n: 'last' });
      // One that lacked only its line end is both.
      expect(lost + shown.length).toBeGreaterThanOrEqual(count + 1);
    }),
  );
});

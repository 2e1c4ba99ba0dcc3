import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../../src/commands/serve/log/logger.ts';

async function linesOf(
  write: (log: ReturnType<typeof createLogger>) => void,
  level: 'info' | 'silent' = 'info',
) {
  const sink = new PassThrough();
  write(createLogger(level, sink));
  sink.end();
  const lines = (await text(sink)).split('\n').filter((line) => line !== '');
  return lines.map((line): unknown => JSON.parse(line));
}

describe('the log', () => {
  it('consists of JSON lines with the level as a word and an RFC 3339 time', async () => {
    const lines = await linesOf((log) => log.info({ listen: 'a:1' }, 'serving'));
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(lines).toEqual([{ level: 'info', time, listen: 'a:1', msg: 'serving' }]);
  });

  it('has no lines below its level', async () => {
    expect(await linesOf((log) => log.debug('x'))).toEqual([]);
    expect(await linesOf((log) => log.fatal('x'), 'silent')).toEqual([]);
  });

  it('has name, code and stack frames of an error and its cause, but no message, which may quote a request', async () => {
    const cause = Object.assign(new Error('10.0.0.1 canary\n    canary'), { code: 'ECONNRESET' });
    const lines = await linesOf((log) => log.warn({ err: new TypeError('canary', { cause }) }, 'odd'));
    expect(lines).toMatchObject([
      { err: { name: 'TypeError', cause: { name: 'Error', code: 'ECONNRESET' } }, msg: 'odd' },
    ]);
    expect(JSON.stringify(lines)).not.toContain('canary');
    expect(JSON.stringify(lines)).toContain('logger.test.ts');
  });
});

import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../../src/cli/serve/log/logger.ts';

async function linesOf(
  write: (log: ReturnType<typeof createLogger>) => void,
  level: 'info' | 'silent' = 'info',
) {
  const sink = new PassThrough();
  write(createLogger({ level, format: 'auto' }, sink, {}));
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

describe('the log of a person', () => {
  type Format = 'auto' | 'json' | 'text';
  /** What a log of this format writes to a terminal, or to a pipe. */
  const written = (format: Format, isTTY: boolean, env: Record<string, string> = {}) => {
    const pieces: string[] = [];
    const log = createLogger({ level: 'info', format }, { isTTY, write: (text) => pieces.push(text) }, env);
    log.warn({ n: 1, replica: 'a b', models: ['x'], isLast: true }, 'odd');
    return pieces.join('');
  };
  const TEXT = /^\d{4}-\d\d-\d\dT[\d:.]+Z WARN {2}odd n=1 replica="a b" models=\["x"\] isLast=true\n$/;

  it.each([
    ['auto', true, true],
    ['auto', false, false],
    ['text', true, true],
    ['text', false, true],
    ['json', true, false],
    ['json', false, false],
  ] as const)('with the format %s, and a terminal: %s, is text: %s', (format, isTTY, isText) => {
    const text = written(format, isTTY, { NO_COLOR: '1' });
    if (isText) expect(text).toMatch(TEXT);
    else expect(JSON.parse(text)).toMatchObject({ level: 'warn', n: 1, replica: 'a b', msg: 'odd' });
  });

  it('has colours on a terminal only, and none with NO_COLOR', () => {
    expect(written('auto', true)).toContain('\u001b[33mWARN ');
    expect(written('auto', true, { NO_COLOR: '1' })).not.toContain('\u001b');
    expect(written('text', false)).not.toContain('\u001b');
  });
});

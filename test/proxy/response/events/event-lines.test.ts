import { describe, expect, test } from 'vitest';
import { EventLines } from '../../../../src/proxy/response/model-rewriter.ts';

/** What the lines of a stream hold, in pieces that end at these offsets; `|` is the end of a data line. */
function linesOf(bytes: Buffer, cuts: readonly number[]): string[] {
  const events: string[] = [''];
  const add = (text: string) => {
    events[events.length - 1] += text;
  };
  const lines = new EventLines({
    onData(piece, start, end) {
      expect(end).toBeGreaterThan(start);
      add(piece.toString('latin1', start, end));
    },
    onLineEnd: () => add('|'),
    onEventEnd: () => void events.push(''),
  });
  [0, ...cuts].forEach((from, i) => {
    lines.push(bytes.subarray(from, cuts[i] ?? bytes.length));
  });
  return events;
}

describe('the lines of an event stream', () => {
  test.each<readonly [string, readonly string[]]>([
    ['data: a\n\ndata:b\ndata\ndata:\n\n', [' a|', 'b||', '']],
    ['data: a\r\rdata: b\r\r', [' a|', ' b|', '']],
    ['data: a\r\n\r\ndata: b\r\n\r\n', [' a|', ' b|', '']],
    ['\ndata: a\n\n\n', ['', ' a|', '', '']],
    ['\u00ef\u00bb\u00bfdata: a\n\n', [' a|', '']],
    ['d\u00efata: a\n\n', ['', '']],
    ['id: data: a\n: data: b\nx\n\n', ['', '']],
    ['xata: a\ndatax: b\ndat: c\n data: d\n\n', ['', '']],
    ['data: a', [' a']],
  ])('%j: hold %j, wherever the stream is cut', (text, expected) => {
    const bytes = Buffer.from(text, 'latin1');
    for (let first = 0; first <= bytes.length; first++)
      for (let second = first; second <= bytes.length; second++)
        expect(linesOf(bytes, [first, second])).toEqual(expected);
    expect(linesOf(bytes, Array.from(bytes.keys()))).toEqual(expected);
  });
});

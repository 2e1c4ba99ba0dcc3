import { describe, expect, test } from 'vitest';
import { ModelFinder } from '../../../src/proxy/response/model-finder.ts';

/** The names that a finder shows, with their quotes, in a text that comes in these pieces. */
function namesIn(pieces: readonly string[], finder = new ModelFinder()): string[] {
  const names: string[] = [];
  for (const piece of pieces) {
    const bytes = Buffer.from(`..${piece}..`);
    for (let at = 2; at < bytes.length - 2; ) {
      const wasInName = finder.isInName;
      const next = finder.read(bytes, at, bytes.length - 2);
      expect(next).toBeGreaterThan(at);
      expect(next).toBeLessThanOrEqual(bytes.length - 2);
      if (wasInName) names[names.length - 1] += bytes.toString('utf8', at, next);
      else if (finder.isInName) names.push('"');
      at = next;
    }
  }
  return names;
}

const toEscapes = (text: string) =>
  [...text].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');

describe('the name of the model', () => {
  test.each<readonly [string, readonly string[]]>([
    ['{"model":"m"}', ['"m"']],
    ['{} {"model":"m"}', ['"m"']],
    ['{"":"x","model":"m"}', ['"m"']],
    ['{"a":{},"model":"m","response":{"model":"n"}}', ['"m"', '"n"']],
    [`{"${toEscapes('response')}":{"model":"m"}}`, ['"m"']],
    [`{"${toEscapes('response')}x":{"model":"m"}}`, []],
    // What is not JSON has no name.
    [',"model":"m"', []],
    ['["a","model":"m"]', []],
    ['{"mod":"el" "m"}', []],
    ['{"x":1,{"model":"m"}}', []],
    ['{"model":1,:"m"}', []],
    ['{"a":{}"model":"m"}', []],
    ['{"response":{"a":1,}"model":"m"}', []],
    ['{"response":{"model":1}"m"}', []],
  ])('in %s is %j, wherever the text is cut', (text, expected) => {
    expect(namesIn([text])).toEqual(expected);
    for (let cut = 0; cut <= text.length; cut++)
      expect(namesIn([text.slice(0, cut), text.slice(cut)])).toEqual(expected);
    expect(namesIn([...text])).toEqual(expected);
  });

  test('does not depend on what was read before the finder began anew', () => {
    const text = '{"a":["\\\\"],"response":{"model":"m"},"mo\\u0064el":"n"}';
    for (let end = 0; end <= text.length; end++) {
      const finder = new ModelFinder();
      namesIn([text.slice(0, end)], finder);
      finder.reset();
      expect(namesIn([text, ':"m"'], finder)).toEqual(['"m"', '"n"']);
      finder.reset();
      expect(namesIn(['{"a":"b","model":"m"}'], finder)).toEqual(['"m"']);
    }
  });

  test('is all that stops the reading of a piece', () => {
    const text = Buffer.from('{"a":"b","c":[1],"model":"m","d":1}');
    const finder = new ModelFinder();
    const open = text.indexOf('"m"');
    expect(finder.read(text, 0, text.length)).toBe(open + 1);
    expect(finder.read(text, open + 1, text.length)).toBe(open + 3);
    expect(finder.read(text, open + 3, text.length)).toBe(text.length);
    expect(finder.read(Buffer.from(' "x"'), 0, 4)).toBe(4);
  });
});

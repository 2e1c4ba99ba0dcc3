import { expect, test } from 'vitest';
import { judge, toOutlookText } from '#verdict/judgement';

const RULE = { dimensions: 7, least: 100, usual: 600, moreIfSuspicious: 50 };
const CERTAINTY = { falseAlarm: 0.01, missed: 0.05 };

/** What is found after so many requests, with these logarithms of evidence. */
function find(given: { count?: number; isEarly?: boolean; fine?: number; wrong?: number }) {
  const { count = 200, isEarly = false, fine, wrong } = given;
  const claims = new Map([['gaps', [wrong === undefined ? undefined : [wrong]]] as const]);
  const findings = { count, isEarly, fine: [fine === undefined ? undefined : [fine]], claims };
  return judge(findings, RULE, CERTAINTY);
}

test.each([
  ['too few requests to say', { count: 200, isEarly: true, fine: 1 }, 'about 400 more are needed'],
  ['no times yet', { count: 700 }, 'about 1 more are needed'],
  // ln 20 is 3.0: twice as much as there is.
  ['half the evidence that it is fine', { fine: 1.5 }, 'about 200 more are needed'],
  ['much evidence, of few requests', { count: 20, fine: 9 }, 'about 80 more are needed'],
  ['much evidence, and something against it', { fine: 9, wrong: 1.2 }, 'about 50 more are needed'],
  // ln 700 is 6.55.
  ['times as those of a slow one', { fine: -3, wrong: 4 }, 'it looks worse; about 128 more are needed'],
  ['nearer to bad than to good', { fine: 0.1, wrong: 6 }, 'it looks worse; about 19 more are needed'],
  ['nearer to good than to bad', { fine: 2.9, wrong: 1.2 }, 'about 50 more are needed'],
  [
    'evidence that is often there by chance',
    { fine: -0.1, wrong: 1 },
    'it is neither clearly good nor clearly bad, so that more may not tell',
  ],
])('what is to be expected: %s', (_title, given, text) => {
  const { kind, wrong, outlook } = find(given);
  expect([kind, wrong]).toEqual(['open', []]);
  expect(toOutlookText(outlook, 'more')).toBe(text);
});

test('a verdict has no outlook', () => {
  expect(find({ fine: 3.1 })).toEqual({ kind: 'good', wrong: [], outlook: null });
  expect(find({ fine: 3.1, wrong: 6.6 })).toEqual({ kind: 'bad', wrong: ['gaps'], outlook: null });
});

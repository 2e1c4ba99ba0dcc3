import { describe, expect, test } from 'vitest';
import { at, itemsAt, textAt } from '../backends/answers.ts';
import {
  findProblem,
  isAlike,
  type Question,
  type Questions,
  VIEWS,
  type View,
} from '../backends/question.ts';
import { toReport } from '../backends/report.ts';

describe('an answer of a backend is the wanted one', () => {
  test.each([
    [3, 3],
    [102.4, 102],
    ['OK', 'OK'],
    [null, null],
    [{ total: { cost: null } }, { total: { cost: null } }],
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
  ])('%j for %j', (wanted, seen) => expect(isAlike(seen, wanted)).toBe(true));

  test.each([
    [3, 3.001],
    [102.4, 101],
    [0, null],
    [[], ['a']],
    [['a', 'b'], ['a']],
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ a: 1 }, [1]],
    [null, undefined],
  ])('and not: %j for %j', (wanted, seen) => expect(isAlike(seen, wanted)).toBe(false));
});

test('a member that an answer lacks is undefined, an empty list or an empty text', () => {
  const answer = { data: [{ id: 7 }] };
  expect(at(answer, 'data', 0, 'id')).toBe(7);
  expect(at(answer, 'data', 'x', 'id')).toBeUndefined();
  expect(itemsAt(answer, 'data', 0)).toEqual([]);
  expect(textAt(answer, 'data', 0, 'id')).toBe('');
});

test('a question that is answered as wanted has no problem', async () => {
  const question: Question = { state: 'lit', query: 'q', wanted: 1, ask: async () => 1 };
  expect(await findProblem(question)).toBeNull();
});

test('the report has a row for each view, and a bar in a question does not end its cell', () => {
  const question: Question = { state: 'dark', query: 'a | `b`', wanted: [], ask: async () => [] };
  const questions = Object.fromEntries(Object.keys(VIEWS).map((view) => [view, question])) as Questions;
  const lines = toReport([{ title: 'Jaeger', questions }]).split('\n');
  for (const view of Object.keys(VIEWS) as View[]) {
    expect(lines).toContain(`| ${VIEWS[view]} | dark |`);
    expect(lines).toContain(`| Jaeger | ${VIEWS[view]} | \`\`a \\| \`b\`\`\` |`);
  }
});

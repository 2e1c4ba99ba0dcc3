import { expect, it } from 'vitest';
import { toOneLine } from '../../../src/cli/terminal/table.ts';

it('a text from elsewhere is one line, which says by an ellipsis that it was cut', () => {
  expect(toOneLine('a\u001b[2J\nb')).toBe('a [2J b');
  const names = Array.from({ length: 8 }, (_, index) => `${'long-'.repeat(18)}${index}`).join(', ');
  expect(toOneLine(`Known: ${names} and 32 more.`)).toBe(`Known: ${names} and 32 more.`);
  expect(toOneLine('x'.repeat(20_000))).toBe(`${'x'.repeat(999)}…`);
});

import { expect, test } from 'vitest';
import type { Caller } from '../../../src/admin/access/caller.ts';
import { FailedTokens } from '../../../src/admin/access/failed-tokens.ts';

const ALICE: Caller = { name: 'alice', role: 'admin' };
const BOB: Caller = { name: 'bob', role: 'reader' };

/** A limiter with a clock of its own and a log. */
function create() {
  const clock = { nowMs: 0 };
  const lines: object[] = [];
  const failedTokens = new FailedTokens({ warn: (fields) => lines.push(fields) }, () => clock.nowMs);
  let guessCount = 0;
  const guess = (address: string, count: number) =>
    Array.from({ length: count }, () => {
      guessCount += 1;
      return failedTokens.admit(address, { digest: `guess-${guessCount}` });
    });
  return { failedTokens, clock, lines, guess };
}

test('ten wrong tokens from a source are answered, then one per second', () => {
  const { failedTokens, clock, guess } = create();
  expect(new Set(guess('10.0.0.1', 10))).toEqual(new Set(['wrong']));
  expect(new Set(guess('10.0.0.1', 50))).toEqual(new Set(['limited']));
  clock.nowMs = 1_000;
  expect(guess('10.0.0.1', 3)).toEqual(['wrong', 'limited', 'limited']);
  clock.nowMs = 60_000;
  expect(guess('10.0.0.1', 11)).toEqual([...Array(10).fill('wrong'), 'limited']);
  expect(failedTokens.count).toBe(74);
});

test('above the limit, who was right from there stays in, and a right guess is not told from a wrong one', () => {
  const { failedTokens, clock, guess } = create();
  expect(failedTokens.admit('10.0.0.1', ALICE)).toBe(ALICE);
  guess('10.0.0.1', 20);
  expect(failedTokens.admit('10.0.0.1', ALICE)).toBe(ALICE);
  expect(failedTokens.admit('10.0.0.1', BOB)).toBe('limited');
  expect(failedTokens.admit('10.0.0.2', BOB)).toBe(BOB);
  clock.nowMs = 1_000;
  expect(failedTokens.admit('10.0.0.1', BOB)).toBe(BOB);
});

test('a wrong token that comes again and again uses up nothing', () => {
  const { failedTokens, guess } = create();
  for (let count = 0; count < 100; count += 1) {
    expect(failedTokens.admit('10.0.0.1', { digest: 'old' })).toBe('wrong');
  }
  expect(failedTokens.admit('10.0.0.1', BOB)).toBe(BOB);
  expect(guess('10.0.0.1', 10)).toEqual([...Array(9).fill('wrong'), 'limited']);
  expect(failedTokens.admit('10.0.0.1', { digest: 'old' })).toBe('wrong');
  expect(failedTokens.count).toBe(111);
});

test('a call without a token is no guess', () => {
  const { failedTokens, guess } = create();
  for (let count = 0; count < 100; count += 1) failedTokens.admit('10.0.0.1', 'missing');
  expect(failedTokens.count).toBe(0);
  guess('10.0.0.1', 20);
  expect(failedTokens.admit('10.0.0.1', 'missing')).toBe('missing');
});

test('all addresses of one IPv6 network are one source, and an IPv4 address is one in both notations', () => {
  const { guess } = create();
  guess('2001:db8:1:2::1', 10);
  expect(guess('2001:db8:1:2:ffff:1:2:3', 1)).toEqual(['limited']);
  expect(guess('2001:db8:1:3::1', 1)).toEqual(['wrong']);
  guess('::ffff:10.0.0.9', 10);
  expect(guess('10.0.0.9', 1)).toEqual(['limited']);
  guess('::1', 10);
  expect(guess('::2', 1)).toEqual(['wrong']);
});

test('the log has one line per minute, with how many there were since the last one', () => {
  const { lines, guess } = create();
  guess('10.0.0.1', 5);
  guess('10.0.0.2', 5);
  expect(lines).toEqual([{ source: '10.0.0.1', failed: 1 }]);
});

test('many sources take bounded memory: the one that called least recently is forgotten', () => {
  const { guess } = create();
  guess('10.0.0.1', 10);
  for (let index = 0; index < 4_096; index += 1) guess(`10.1.${index >> 8}.${index & 255}`, 1);
  expect(guess('10.0.0.1', 1)).toEqual(['wrong']);
});

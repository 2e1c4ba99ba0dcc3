import { describe, expect, test } from 'vitest';
import { drawSalt, OutputDigest } from '../../src/shadow/output-digest.ts';

const digestOf = (salt: ReturnType<typeof drawSalt>, ...pieces: readonly string[]) => {
  const digest = new OutputDigest(salt);
  for (const piece of pieces) digest.add(Buffer.from(piece));
  return digest;
};

describe('the digest of an output', () => {
  test('is the same however the output is cut into pieces', () => {
    const salt = drawSalt();
    const whole = digestOf(salt, 'the quick brown fox jumps over the lazy dog');
    const cut = digestOf(salt, 'the quick b', 'rown fox', ' jumps over the lazy dog');
    expect(whole.partsAt(cut)).toBeNull();
  });

  test('shows where two outputs part, give or take a few bytes', () => {
    const salt = drawSalt();
    const own = digestOf(salt, 'the quick brown fox ', 'jumps');
    const other = digestOf(salt, 'the quick brown fox ', 'sleeps');
    expect(own.partsAt(other)).toBeGreaterThanOrEqual(16);
    expect(own.partsAt(other)).toBeLessThanOrEqual(20);
    expect(own.piecesBefore(20)).toBe(1);
  });

  test('tells an output from its beginning', () => {
    const salt = drawSalt();
    expect(digestOf(salt, 'twelve bytes').partsAt(digestOf(salt, 'twelve'))).not.toBeNull();
  });

  test('reads escapes of JSON as what they stand for', () => {
    const salt = drawSalt();
    const escaped = new OutputDigest(salt);
    const json = Buffer.from('"caf\\u00e9\\n"');
    escaped.addJson(json, 1, json.length - 1);
    expect(escaped.partsAt(digestOf(salt, 'café\n'))).toBeNull();
  });

  test('of the same output is another one with another salt', () => {
    const text = 'the quick brown fox jumps over the lazy dog';
    expect(digestOf([1, 2], text).partsAt(digestOf([3, 4], text))).toBe(0);
  });
});

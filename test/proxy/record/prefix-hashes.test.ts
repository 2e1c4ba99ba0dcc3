import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyCharacter } from '#testkit/any-character.ts';
import { runs } from '#testkit/runs.ts';
import { countCodePoints, createPrefixHasher } from '../../../src/proxy/record/prefix-hashes.ts';

const salt = Buffer.from('salt');

function sha256(...parts: readonly (Buffer | string)[]): Buffer {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return digest.digest();
}

interface Hashed {
  readonly pieces: readonly string[];
  readonly model?: string;
  readonly tools?: string;
  readonly blockChars?: number;
  readonly maxBlocks?: number;
}

function hashesOf({ pieces, model = 'm', tools, blockChars = 4, maxBlocks = 128 }: Hashed): string[] {
  const chain = createPrefixHasher({ salt, blockChars, maxBlocks }).begin(
    model,
    tools === undefined ? undefined : Buffer.from(tools),
  );
  for (const piece of pieces) chain.add(Buffer.from(piece));
  return chain.finish();
}

/** The definition, word for word, over an array of code points. */
function expectedHashes({
  pieces,
  model = 'm',
  tools = '',
  blockChars = 4,
  maxBlocks = 128,
}: Hashed): string[] {
  const key = sha256(salt);
  const points = [...pieces.join('')];
  const hashes: string[] = [];
  let previous = sha256(key, model, Buffer.from([0]), tools);
  for (let at = 0; at + blockChars <= points.length && hashes.length < maxBlocks; at += blockChars) {
    previous = sha256(key, previous, points.slice(at, at + blockChars).join(''));
    hashes.push(previous.toString('hex').slice(0, 16));
  }
  return hashes;
}

describe('prefix hashes', () => {
  it('follow the definition, however the text is split', () => {
    const hashed = fc.record({
      pieces: fc.array(fc.string({ unit: anyCharacter, maxLength: 20 })),
      model: fc.string({ unit: anyCharacter }),
      tools: fc.option(fc.string({ unit: anyCharacter }), { nil: '' }),
      blockChars: fc.integer({ min: 1, max: 9 }),
      maxBlocks: fc.integer({ min: 1, max: 12 }),
    });
    fc.assert(
      fc.property(hashed, (each) => {
        expect(hashesOf(each)).toEqual(expectedHashes(each));
      }),
      { numRuns: runs(500) },
    );
  });

  it('begin alike as far as texts do, in whole blocks', () => {
    const [a, b] = [hashesOf({ pieces: ['aaaabbbbcccc'] }), hashesOf({ pieces: ['aaaabbbbcccd'] })];
    expect(a.slice(0, 2)).toEqual(b.slice(0, 2));
    expect(a[2]).not.toBe(b[2]);
  });

  it('differ with the model, the tools and the salt', () => {
    const pieces = ['aaaa'];
    const other = createPrefixHasher({ salt: Buffer.from('other'), blockChars: 4, maxBlocks: 1 }).begin(
      'm',
      undefined,
    );
    other.add(Buffer.from('aaaa'));
    const all = [
      ...hashesOf({ pieces }),
      ...hashesOf({ pieces, model: 'n' }),
      ...hashesOf({ pieces, tools: '[]' }),
      ...other.finish(),
    ];
    expect(new Set(all).size).toBe(4);
  });

  it('leave out a block that is not complete', () => {
    expect(hashesOf({ pieces: ['aaa'] })).toEqual([]);
    expect(hashesOf({ pieces: ['aaaé'] })).toHaveLength(1);
    expect(hashesOf({ pieces: ['aaaéb'] })).toHaveLength(1);
  });

  it('end after the configured number of blocks', () => {
    const hasher = createPrefixHasher({ salt, blockChars: 1, maxBlocks: 2 });
    const chain = hasher.begin('m', undefined);
    chain.add(Buffer.from('a'));
    expect(chain.isFull).toBe(false);
    chain.add(Buffer.from('bcd'));
    expect(chain.isFull).toBe(true);
    expect(chain.finish()).toHaveLength(2);
  });

  it('of one request do not depend on the request before', () => {
    const hasher = createPrefixHasher({ salt, blockChars: 4, maxBlocks: 8 });
    const hashNext = (model: string, text: string) => {
      const chain = hasher.begin(model, undefined);
      chain.add(Buffer.from(text));
      return chain.finish();
    };
    const first = hashNext('m', 'aaaabbbbccc');
    hashNext('n', 'xxxxyyyyz');
    expect(hashNext('m', 'aaaabbbbccc')).toEqual(first);
  });
});

describe('a media mark', () => {
  const hasher = createPrefixHasher({ salt, blockChars: 4, maxBlocks: 8 });
  const sample = (...parts: readonly string[]) =>
    sha256(sha256(salt), ...parts)
      .toString('hex')
      .slice(0, 16);

  it.each([
    ['', '', ''],
    ['short', 'short', 'short'],
    ['x'.repeat(4096), 'x'.repeat(4096), 'x'.repeat(4096)],
    [`a${'x'.repeat(4096)}`, `a${'x'.repeat(4095)}`, 'x'.repeat(4096)],
    [`${'a'.repeat(4096)}middle${'b'.repeat(4096)}`, 'a'.repeat(4096), 'b'.repeat(4096)],
  ])('holds the size and a salted hash of both ends (case %#)', (payload, first, last) => {
    expect(hasher.mediaMark(Buffer.from(payload)).toString()).toBe(
      `\ufffc${payload.length}:${sample(first, last)}`,
    );
  });
});

describe('counting code points', () => {
  it('counts as iterating a string does', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        expect(countCodePoints(Buffer.from(text))).toBe([...text].length);
      }),
    );
  });
});

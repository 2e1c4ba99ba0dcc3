import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyCharacter } from '#testkit/any-character.ts';
import { runs } from '#testkit/runs.ts';
import { MemberScanner, type WantedMembers } from '../../src/json/member-scanner.ts';

const WANTED: WantedMembers = {
  members: ['usage', 'timings', 'error'],
  list: 'choices',
  itemMembers: ['index', 'finish_reason'],
};

/** Pushes the bytes in pieces of these sizes, again and again. Overwrites each piece after the push. */
function scan(bytes: Buffer, sizes: readonly number[] = [bytes.length]): MemberScanner {
  const scanner = new MemberScanner(WANTED);
  let at = 0;
  for (let turn = 0; at < bytes.length; turn++) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? 1);
    const piece = Buffer.from(bytes.subarray(at, at + size));
    scanner.push(piece);
    piece.fill('"');
    at += size;
  }
  return scanner;
}

function capturedOf(scanner: MemberScanner): Record<string, string> {
  return Object.fromEntries([...scanner.captured].map(([key, raw]) => [key, raw.toString().trim()]));
}

describe('a scanner of answers', () => {
  it('captures wanted members and finish reasons of a chat completion', () => {
    const response = `{"id":"x","choices":[
      {"index":1,"message":{"content":"a \\"usage\\":{} \\\\","finish_reason":"no"},"finish_reason":"length"},
      {"finish_reason": "stop" ,"index": 0, "logprobs":{"content":[{"finish_reason":"no"}]}},
      {"index":2,"finish_reason":null} ],
      "usage" : {"prompt_tokens":3,"details":{"usage":[1,2]}} , "timings":null}`;
    const scanner = scan(Buffer.from(response));
    expect(capturedOf(scanner)).toEqual({
      usage: '{"prompt_tokens":3,"details":{"usage":[1,2]}}',
      timings: 'null',
    });
    expect(scanner.items).toEqual([
      { position: 0, values: [1, 'length'] },
      { position: 1, values: [0, 'stop'] },
      { position: 2, values: [2, undefined] },
    ]);
  });

  it('finds what JSON.parse finds, wherever the answer is split', () => {
    const choice = fc.record(
      {
        finish_reason: fc.oneof(fc.constantFrom('stop', 'length', 'é"\\'), fc.jsonValue({ maxDepth: 1 })),
        message: fc.jsonValue(),
        text: fc.string({ unit: anyCharacter }),
      },
      { requiredKeys: [] },
    );
    const response = fc.record(
      {
        choices: fc.array(choice),
        usage: fc.jsonValue(),
        error: fc.jsonValue(),
        data: fc.array(fc.record({ embedding: fc.array(fc.double({ noNaN: true })), usage: fc.jsonValue() })),
        other: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(response, sizes, fc.constantFrom('', ' ', '\n\t'), (generated, pieceSizes, indent) => {
        const text = JSON.stringify(generated, null, indent);
        const parsed = JSON.parse(text) as typeof generated;
        const scanner = scan(Buffer.from(text), pieceSizes);
        const captured = Object.fromEntries(
          [...scanner.captured].map(([k, v]) => [k, JSON.parse(v.toString())]),
        );
        const { usage, error } = parsed;
        expect(captured).toStrictEqual({
          ...(usage === undefined ? {} : { usage }),
          ...(error === undefined ? {} : { error }),
        });
        const items = (parsed.choices ?? []).flatMap(({ finish_reason: reason }, position) => {
          const isScalar = typeof reason !== 'object';
          return reason === undefined
            ? []
            : [{ position, values: [undefined, isScalar ? reason : undefined] }];
        });
        expect(scanner.items).toEqual(items);
      }),
      { numRuns: runs(500) },
    );
  });

  it('finds members of any name, in a list of any name', () => {
    const scanner = new MemberScanner({ members: ['söme', 'x y'], list: 'output', itemMembers: ['st"us'] });
    const text = '{"söme":1,"x y":{},"output":[{"st\\"us":"a"}],"outputs":[{"st\\"us":"b"}]}';
    for (const byte of Buffer.from(text)) scanner.push(Buffer.of(byte));
    expect(capturedOf(scanner)).toEqual({ söme: '1', 'x y': '{}' });
    expect(scanner.items).toEqual([{ position: 0, values: ['a'] }]);
  });

  it('captures the last of duplicate members, and of duplicate choices', () => {
    const scanner = scan(
      Buffer.from(
        `{"usage":1,"choices":[{"finish_reason":"no"},{"finish_reason":"no"}],"us\\u0061ge":2,
          "choices":[{"finish_reason":"a","finish_reason":"b"}]}`,
      ),
      [7],
    );
    expect(capturedOf(scanner)).toEqual({ usage: '2' });
    expect(scanner.items).toEqual([{ position: 0, values: [undefined, 'b'] }]);
  });

  it('keeps nothing of a member that is too large', () => {
    const member = (bytes: number) => Buffer.from(`{"usage":"${'x'.repeat(bytes - 2)}"}`);
    for (const sizes of [undefined, [1000]]) {
      expect(capturedOf(scan(member(64 * 1024), sizes)).usage).toHaveLength(64 * 1024);
      expect(capturedOf(scan(member(64 * 1024 + 1), sizes))).toEqual({});
    }
  });

  it('captures nothing of a member that is incomplete', () => {
    expect(capturedOf(scan(Buffer.from('{"timings":{},"usage":{"prompt_tokens":3}')))).toEqual({
      timings: '{}',
    });
    expect(capturedOf(scan(Buffer.from('{"usage":12')))).toEqual({});
  });

  it.each(['', '<html>{"usage":1}', '[{"usage":1}]', '"{\\"usage\\":1}"', 'null', 'data: {"usage":1}\n\n'])(
    'captures nothing of %j',
    (text) => {
      const scanner = scan(Buffer.from(text), [3]);
      expect(capturedOf(scanner)).toEqual({});
      expect(scanner.items).toEqual([]);
    },
  );

  it('never throws for any bytes', () => {
    const scrap = fc.constantFrom(
      ...[...'{}[],:"\\', '"usage"', '"choices":[{', '"finish_reason":"', '"index":', '9'],
    );
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
      fc.array(scrap, { maxLength: 60 }).map((pieces) => Buffer.from(`{${pieces.join('')}`)),
    );
    fc.assert(
      fc.property(bytes, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (input, sizes) => {
        scan(input, sizes);
      }),
      { numRuns: runs(2000) },
    );
  });

  it('keeps at most 1024 items', () => {
    const choices = Array.from({ length: 100_000 }, () => '{"finish_reason":"stop"}').join(',');
    expect(scan(Buffer.from(`{"choices":[${choices}]}`)).items).toHaveLength(1024);
  });

  it('finds usage after megabytes of embeddings', () => {
    const embedding = Array.from({ length: 4096 }, (_, i) => Math.sin(i));
    const data = Array.from({ length: 50 }, (_, index) => ({ object: 'embedding', index, embedding }));
    const usage = { prompt_tokens: 7, total_tokens: 7 };
    const scanner = scan(Buffer.from(JSON.stringify({ data, usage })), [64 * 1024, 65_537]);
    expect(capturedOf(scanner)).toEqual({ usage: JSON.stringify(usage) });
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Span } from '#json';
import { endpointAt } from '#testkit/reading/response-reading.ts';
import {
  type RequestFacts,
  readRequestFacts,
} from '../../../../src/proxy/request/inspection/request-facts.ts';

const CHAT = endpointAt('/v1/chat/completions');

function factsOf(text: string): RequestFacts {
  return readRequestFacts(Buffer.from(text), CHAT);
}

function textAt(text: string, span: Span | undefined): string | undefined {
  return span && Buffer.from(text).toString('utf8', span.start, span.end);
}

describe('the facts of a request', () => {
  it('are read from a full chat request', () => {
    const text = `{ "model":"m", "stream" : true, "n": 2, "max_tokens": 5, "messages": [ {"role":"user"} ],
      "tools":[{"type":"function"}], "stream_options":{"include_usage":false,"continuous_usage_stats":true} }\n`;
    const facts = factsOf(text);
    expect(facts).toMatchObject({
      model: 'm',
      stream: true,
      n: 2,
      maxTokens: 5,
      streamOptions: { kind: 'object', includeUsage: false, continuousUsageStats: true },
    });
    expect(textAt(text, facts.texts[0])).toBe('[ {"role":"user"} ]');
    expect(textAt(text, facts.tools)).toBe('[{"type":"function"}]');
    expect(text.slice(facts.closingBrace)).toBe('}\n');
  });

  it.each([
    ['/v1/chat/completions', '"M"'],
    ['/v1/completions', '"P"'],
    ['/v1/embeddings', '"I"'],
  ] as const)('know the request text of %s', (endpoint, expected) => {
    const text = '{"model":"m","messages":"M","prompt":"P","input":"I"}';
    expect(textAt(text, readRequestFacts(Buffer.from(text), endpointAt(endpoint)).texts[0])).toBe(expected);
  });

  it('are those of the last of duplicate members, whatever their kind', () => {
    const text = `{"model":1,"model":"first","model":"last","stream":true,"stream":1,"max_tokens":5,"max_tokens":"6",
      "messages":[1],"messages":[2],"stream_options":{"include_usage":true},"stream_options":{"include_usage":null}}`;
    const facts = factsOf(text);
    expect(facts).toMatchObject({ model: 'last', stream: 1, maxTokens: undefined });
    expect(facts.streamOptions.includeUsage).toBe(null);
    expect(textAt(text, facts.texts[0])).toBe('[2]');
    expect(facts.streamOptions.spans.map((span) => textAt(text, span))).toEqual([
      '{"include_usage":true}',
      '{"include_usage":null}',
    ]);
  });

  it('are found in keys and values that are written with escapes', () => {
    expect(factsOf('{"\\u006dodel":"\\u00e9\\n","str\\u0065am":true}')).toMatchObject({
      model: 'é\n',
      stream: true,
    });
  });

  it.each([
    ['{"model":"m","max_tokens":1,"max_completion_tokens":2}', 2],
    ['{"model":"m","max_completion_tokens":0,"max_tokens":1}', 0],
    ['{"model":"m","max_completion_tokens":null,"max_tokens":7}', 7],
    ['{"model":"m","max_tokens":-1}', undefined],
    ['{"model":"m","max_tokens":1.5}', undefined],
    ['{"model":"m","max_tokens":1e3}', 1000],
    ['{"model":"m","max_tokens":-0}', 0],
    ['{"model":"m","max_tokens":1e400}', undefined],
    ['{"model":"m","max_tokens":9007199254740993}', undefined],
    ['{"model":"m"}', undefined],
  ])('take the token limit of %s as %s', (text, expected) => {
    expect(factsOf(text).maxTokens).toBe(expected);
  });

  it.each([
    ['', 'absent', undefined, 0],
    [',"stream_options":null', 'null', undefined, 1],
    [',"stream_options":"yes"', 'string', undefined, 1],
    [',"stream_options":{}', 'object', undefined, 1],
    [',"stream_options":{"include_usage":null}', 'object', null, 1],
    [',"stream_options":{"include_usage":"yes"}', 'object', 'yes', 1],
    [',"stream_options":{"include_usage":1.0}', 'object', 1, 1],
    [',"stream_options":{"include_usage":false,"include_usage":true}', 'object', true, 1],
    [',"stream_options":{"include_usage":true},"stream_options":7', 'number', undefined, 2],
    [',"x":{"stream_options":{"include_usage":true}}', 'absent', undefined, 0],
  ])('tell of %j the kind %s and include_usage as it was sent: %j', (member, kind, includeUsage, count) => {
    const { streamOptions } = factsOf(`{"model":"m"${member}}`);
    expect(streamOptions).toMatchObject({ kind, includeUsage });
    expect(streamOptions.spans).toHaveLength(count);
  });

  it.each(['[]', '{"a":1}', '"falsey"', '"secret prompt"', `"${'\\u0074'.repeat(6)}"`])(
    'keep nothing of a `stream` that no engine reads as a boolean: %s',
    (value) => {
      expect(factsOf(`{"model":"m","stream":${value}}`).stream).toBe('?');
    },
  );

  it.each([
    '',
    '[]',
    '"x"',
    'null',
    '{"model":"m"',
    '{"model":"m"} {}',
    '{"model":"m",}',
    '{"model":1,"a":tru}',
  ])('cannot be read from %j', (text) => {
    expect(() => factsOf(text)).toThrow(expect.objectContaining({ code: 'invalid_json' }));
  });

  it.each(['{}', '{"model":null}', '{"model":["m"]}', '{"model":"m","model":1}', '{"x":{"model":"m"}}'])(
    'name no model in %j',
    (text) => {
      expect(factsOf(text).model).toBeNull();
    },
  );

  it.each(['"stream_options":null,', '"stream_options":{"include_usage":0},'])(
    'are refused rather than remembered a million times: %j',
    (member) => {
      expect(() => factsOf(`{${member.repeat(100_000)}"model":"m"}`)).toThrow(
        expect.objectContaining({ code: 'large_stream_options' }),
      );
    },
  );

  it('never show the request in an error', () => {
    for (const text of ['{"canary" "canary"}', '{"canary":canary}', '{"model":{"canary":1}}']) {
      try {
        factsOf(text);
        expect.unreachable();
      } catch (error) {
        expect(`${String(error)} ${String((error as Error).cause)}`).not.toContain('canary');
      }
    }
  });

  it('are those that JSON.parse finds', () => {
    const member = fc.tuple(
      fc.constantFrom('model', 'stream', 'max_tokens', 'n', 'messages', 'tools', 'stream_options', 'other'),
      fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('m', true, 3)),
    );
    fc.assert(
      fc.property(fc.uniqueArray(member, { selector: ([key]) => key }), (members) => {
        const parsed = Object.fromEntries([...members, ['model', 'm']]);
        const text = JSON.stringify(parsed, null, 1);
        const facts = factsOf(text);
        if (typeof parsed.stream === 'boolean') expect(facts.stream).toBe(parsed.stream);
        for (const [span, key] of [
          [facts.texts[0], 'messages'],
          [facts.tools, 'tools'],
        ] as const) {
          const found = textAt(text, span);
          expect(found === undefined ? undefined : JSON.parse(found)).toStrictEqual(
            JSON.parse(JSON.stringify({ value: parsed[key] })).value,
          );
        }
      }),
    );
  });
});

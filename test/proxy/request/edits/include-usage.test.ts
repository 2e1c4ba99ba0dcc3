import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endpointAt } from '#testkit/reading/response-reading.ts';
import { runs } from '#testkit/runs.ts';
import { toUpstreamBody } from '../../../../src/proxy/attempt/recorded-attempts.ts';
import { readUsageWish, usageOptionsToSet } from '../../../../src/proxy/request/edits/include-usage.ts';
import { readRequestFacts } from '../../../../src/proxy/request/inspection/request-facts.ts';

const CHAT = endpointAt('/v1/chat/completions');

function splice(text: string): string {
  const body = Buffer.from(text);
  return Buffer.concat(toUpstreamBody(body, readRequestFacts(body, CHAT), ['include_usage'])).toString();
}

/** What the client wrote, and what the replica must get for it. */
interface Change {
  readonly from: string;
  readonly to: string;
}

const same = (text: string): Change => ({ from: text, to: text });
const space = fc.constantFrom('', ' ', '\n', '\r\n\t');
const anyValue = fc.oneof(
  fc.json({ maxDepth: 2 }),
  fc.constantFrom('12345678901234567890', '1.0', '-0.0e+7', '"\\u0041\\/"', '{"a":1,"a":2}'),
  fc.constantFrom('{"stream_options":null}', '[{"stream_options":{"include_usage":false}}]', '"}"'),
);

/** Joins members into an object, with white space between all words; `added` goes right before the brace. */
function toObject(spaces: readonly string[], members: readonly Change[], added: string): Change {
  const at = (index: number) => spaces[index % spaces.length] ?? '';
  const join = (pick: (change: Change) => string, last: string) =>
    `{${at(0)}${members.map((member, i) => pick(member) + at(i)).join(`,${at(1)}`)}${at(2)}${last}}`;
  return { from: join(({ from }) => from, ''), to: join(({ to }) => to, added) };
}

const spaces = fc.array(space, { minLength: 3, maxLength: 5 });

const optionsObject = fc
  .tuple(
    spaces,
    fc.array(
      fc.oneof(
        fc
          .tuple(fc.constantFrom('"include_usage"', '"include\\u005fusage"'), anyValue, space)
          .map(([key, value, gap]) => ({
            asks: true,
            from: `${key}:${gap}${value}`,
            to: `${key}:${gap}true`,
          })),
        fc.tuple(fc.constantFrom('"continuous_usage_stats"', '"x"'), anyValue).map(([key, value]) => ({
          asks: false,
          ...same(`${key}:${value}`),
        })),
      ),
      { maxLength: 4 },
    ),
  )
  .map(([gaps, members]) => {
    const added = members.length > 0 ? ',"include_usage":true' : '"include_usage":true';
    return toObject(gaps, members, members.some(({ asks }) => asks) ? '' : added);
  });

const optionsValue = fc.oneof(
  optionsObject,
  fc.constant({ from: 'null', to: '{"include_usage":true}' }),
  fc.constantFrom('7', 'true', '"include_usage"', '[]', '[{"include_usage":false}]').map(same),
);

const body = fc
  .tuple(
    spaces,
    fc.array(fc.tuple(fc.constantFrom('messages', 'x', 'include_usage', 'é'), anyValue), { maxLength: 4 }),
    fc.array(
      fc.tuple(fc.constantFrom('"stream_options"', '"stream_\\u006fptions"'), space, optionsValue, fc.nat()),
      {
        maxLength: 3,
      },
    ),
    fc.nat(),
  )
  .map(([gaps, others, options, modelAt]) => {
    const members = others.map(([key, value]) => same(`"${key}":${value}`));
    members.splice(modelAt % (members.length + 1), 0, same('"model":"m"'));
    for (const [key, gap, value, place] of options) {
      members.splice(place % (members.length + 1), 0, {
        from: `${key}${gap}:${gap}${value.from}`,
        to: `${key}${gap}:${gap}${value.to}`,
      });
    }
    return toObject(gaps, members, options.length === 0 ? ',"stream_options":{"include_usage":true}' : '');
  });

describe('the include_usage splice', () => {
  it('changes every top-level stream_options and no other byte', () => {
    fc.assert(
      fc.property(body, ({ from, to }) => {
        expect(splice(from)).toBe(to);
      }),
      { numRuns: runs(1000) },
    );
  });

  it("sends the client's JSON plus include_usage", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })),
        fc.option(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 1 })), { nil: undefined }),
        (others, options) => {
          const client = {
            ...others,
            model: 'm',
            ...(options === undefined ? {} : { stream_options: options }),
          };
          const text = JSON.stringify(client, null, 2);
          expect(JSON.parse(splice(text))).toStrictEqual({
            ...(JSON.parse(text) as object),
            stream_options: { ...(JSON.parse(text) as typeof client).stream_options, include_usage: true },
          });
        },
      ),
    );
  });

  it.each([
    ['{"model":"m"}', '{"model":"m","stream_options":{"include_usage":true}}'],
    ['{"model":"m"}\n', '{"model":"m","stream_options":{"include_usage":true}}\n'],
    ['{"stream_options":{},"model":"m"}', '{"stream_options":{"include_usage":true},"model":"m"}'],
    ['{"stream_options":null,"model":"m"}', '{"stream_options":{"include_usage":true},"model":"m"}'],
    ['{"model":"m","stream_options":[]}', '{"model":"m","stream_options":[]}'],
    [
      '{"model":"m","stream_options":{"include_usage":false,"a":1,"include_usage":null}}',
      '{"model":"m","stream_options":{"include_usage":true,"a":1,"include_usage":true}}',
    ],
  ])('makes of %s what the replica gets', (from, to) => {
    expect(splice(from)).toBe(to);
  });

  it('copies nothing of a large body', () => {
    const large = Buffer.from(`{"model":"m","messages":"${'x'.repeat(1 << 20)}"}`);
    const pieces = toUpstreamBody(large, readRequestFacts(large, CHAT), ['include_usage']);
    expect(pieces[0]?.buffer).toBe(large.buffer);
    expect(pieces.reduce((sum, piece) => sum + piece.length, 0)).toBe(
      large.length + ',"stream_options":{"include_usage":true}'.length,
    );
  });
});

const ENGINES = ['vllm', 'sglang', 'llamacpp', 'tgi', 'ollama', 'openai'] as const;
type Named = (typeof ENGINES)[number];
const PYDANTIC: readonly Named[] = ['vllm', 'sglang'];

function wishOf(streamOptions: string, engine: Named, engineVersion: string | null = null) {
  const text = `{"model":"m"${streamOptions === '' ? '' : `,"stream_options":${streamOptions}`}}`;
  const facts = readRequestFacts(Buffer.from(text), CHAT);
  return readUsageWish(facts.streamOptions, { engine, engineVersion });
}

describe('what the client says about usage', () => {
  it.each(ENGINES)('is the same to every engine in what the API knows: %s', (engine) => {
    expect(wishOf('', engine)).toBe('not_asked');
    expect(wishOf('null', engine)).toBe('not_asked');
    expect(wishOf('{"include_usage":false}', engine)).toBe('not_asked');
    expect(wishOf('{"include_usage":true}', engine)).toBe('asked');
    expect(wishOf('{"include_usage":false,"include_usage":true}', engine)).toBe('asked');
  });

  it.each(['{}', '{"continuous_usage_stats":true}', '{"include_usage":null}', '{"x":1}'])(
    'is nothing in %s; TGI, whose options need include_usage, gets it as it is',
    (options) => {
      for (const engine of ENGINES) {
        expect(wishOf(options, engine)).toBe(engine === 'tgi' ? 'refused' : 'not_asked');
      }
    },
  );

  it.each([
    '1',
    '1.0',
    '1e0',
    '"1"',
    '"true"',
    '"True"',
    '"TRUE"',
    '"t"',
    '"y"',
    '"on"',
    '"yes"',
    '"\\u006fn"',
  ])('is true to pydantic only: %s', (value) => {
    for (const engine of ENGINES) {
      const expected = PYDANTIC.includes(engine) ? 'asked' : 'refused';
      expect(wishOf(`{"include_usage":${value}}`, engine)).toBe(expected);
    }
  });

  it.each(['0', '-0', '0.0', '"0"', '"false"', '"FALSE"', '"f"', '"n"', '"no"', '"off"'])(
    'is false to pydantic only: %s',
    (value) => {
      for (const engine of ENGINES) {
        const expected = PYDANTIC.includes(engine) ? 'not_asked' : 'refused';
        expect(wishOf(`{"include_usage":${value}}`, engine)).toBe(expected);
      }
    },
  );

  it.each([
    '"maybe"',
    '"trues"',
    '" true"',
    '""',
    '2',
    '-1',
    '0.5',
    '1e999',
    '[]',
    '[true]',
    '{}',
    `"${'1'.repeat(100)}"`,
  ])('is refused by every engine: %s', (value) => {
    for (const engine of ENGINES) expect(wishOf(`{"include_usage":${value}}`, engine)).toBe('refused');
  });

  it.each(['7', '"x"', '[]', 'true'])('is refused if the options are not an object: %s', (options) => {
    for (const engine of ENGINES) expect(wishOf(options, engine)).toBe('refused');
  });

  it('is refused for running figures only by engines that know them', () => {
    for (const engine of ENGINES) {
      const expected = PYDANTIC.includes(engine) ? 'refused' : 'asked';
      expect(wishOf('{"include_usage":true,"continuous_usage_stats":"maybe"}', engine)).toBe(expected);
    }
  });

  it.each([
    ['0.17.9', 'asked'],
    ['0.6.0', 'asked'],
    ['0.18.0', 'not_asked'],
    ['0.32.0', 'not_asked'],
    ['1.0.0', 'not_asked'],
    [null, 'not_asked'],
  ] as const)('in options without include_usage depends on the release of vLLM: %s', (version, expected) => {
    expect(wishOf('{}', 'vllm', version)).toBe(expected);
    expect(wishOf('{"continuous_usage_stats":true}', 'vllm', version)).toBe(expected);
    expect(wishOf('{"include_usage":null}', 'vllm', version)).toBe('not_asked');
    expect(wishOf('null', 'vllm', version)).toBe('not_asked');
    expect(wishOf('{}', 'sglang', version)).toBe('not_asked');
  });
});

describe('whether to ask for usage', () => {
  const isToBeAsked = (members: string, engine: Named, path = '/v1/chat/completions') => {
    const endpoint = endpointAt(path);
    const facts = readRequestFacts(Buffer.from(`{"model":"m"${members}}`), endpoint);
    return usageOptionsToSet(facts, endpoint, { engine, engineVersion: null }, false).length > 0;
  };

  it('is true for a stream of chat or completions whose client did not ask', () => {
    for (const engine of ENGINES) {
      expect(isToBeAsked(',"stream":true', engine)).toBe(true);
      expect(isToBeAsked(',"stream":true', engine, '/v1/completions')).toBe(true);
      expect(isToBeAsked(',"stream":true', engine, '/v1/embeddings')).toBe(false);
      expect(isToBeAsked(',"stream":true,"stream_options":{"include_usage":true}', engine)).toBe(false);
      for (const stream of ['', ',"stream":false', ',"stream":null', ',"stream":"maybe"', ',"stream":2']) {
        expect(isToBeAsked(stream, engine)).toBe(false);
      }
    }
  });

  it.each(['1', '"on"', '"true"', '1.0'])('depends on whether the engine reads it as true: %s', (stream) => {
    for (const engine of ENGINES) {
      expect(isToBeAsked(`,"stream":${stream}`, engine)).toBe(PYDANTIC.includes(engine));
    }
  });
});

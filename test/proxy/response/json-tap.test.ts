import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { createEventRelay, toReading } from '#testkit/reading/response-reading.ts';
import { runs } from '#testkit/runs.ts';
import { JsonTap } from '../../../src/proxy/response/json-tap.ts';

const ARRIVED_MS = 1000;

/** Lets events pass at these times and returns what the record says of them. */
function tapped(
  events: readonly (readonly [atMs: number, text: string])[],
  tally: { choicesPerPrompt?: number; isTotalPerChoice?: boolean } = {},
): Partial<RequestRecord> {
  const { tap, events: relay } = createEventRelay(tally, ARRIVED_MS);
  for (const [atMs, text] of events) relay.push(Buffer.from(text), atMs);
  relay.end();
  const record: Partial<RequestRecord> = {};
  tap.fill(record);
  return record;
}

/** What the record says of a JSON response that comes in these reads. */
function tappedReads(reads: readonly Buffer[]): Partial<RequestRecord> {
  const tap = new JsonTap(toReading());
  for (const read of reads) tap.push(read);
  const record: Partial<RequestRecord> = {};
  tap.fill(record);
  return record;
}

/** What the record says of a JSON response, which is the same in one read, in two cut anywhere, and byte by byte. */
function tappedJson(text: string): Partial<RequestRecord> {
  const whole = Buffer.from(text);
  const inOneRead = tappedReads([whole]);
  expect(tappedReads([...whole].map((byte) => Buffer.of(byte)))).toEqual(inOneRead);
  for (let cut = 0; cut <= whole.length; cut++) {
    expect(tappedReads([whole.subarray(0, cut), whole.subarray(cut)]), `cut at ${cut}`).toEqual(inOneRead);
  }
  return inOneRead;
}

const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const delta = (members: object, index = 0) =>
  data({ choices: [{ index, delta: members, finish_reason: null }] });
const usageOf = (usage: object) => data({ choices: [], usage });

const OUTPUT: readonly (readonly [string, string])[] = [
  ['content', delta({ content: 'x' })],
  ['reasoning', delta({ reasoning: 'x' })],
  ['reasoning_content', delta({ reasoning_content: 'x' })],
  ['a refusal', delta({ refusal: 'x' })],
  ['a tool call', delta({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '' } }] })],
  [
    'a tool call in an object, as old TGI has it',
    delta({ tool_calls: { index: 0, function: { arguments: '1' } } }),
  ],
  ['a function call', delta({ function_call: { name: 'f', arguments: '' } })],
  ['content in parts', delta({ content: [{ type: 'text', text: 'x' }] })],
  ['text', data({ choices: [{ index: 0, text: 'x', finish_reason: null }] })],
  ['a whole message', data({ choices: [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }] })],
  [
    'output of the second choice',
    data({
      choices: [
        { index: 0, delta: {} },
        { index: 1, delta: { content: 'x' } },
      ],
    }),
  ],
];

const NO_OUTPUT: readonly (readonly [string, string])[] = [
  ['a role', delta({ role: 'assistant' })],
  ['a role with empty content', delta({ role: 'assistant', content: '' })],
  ['null content', delta({ role: 'assistant', content: null, reasoning_content: null, tool_calls: null })],
  ['an empty delta', delta({})],
  ['an empty list of tool calls', delta({ content: null, tool_calls: [] })],
  ['an empty function call', delta({ function_call: {} })],
  ['a finish reason', data({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })],
  ['empty text', data({ choices: [{ index: 0, text: '', finish_reason: null }] })],
  ['log probabilities alone', data({ choices: [{ index: 0, delta: {}, logprobs: { content: [] } }] })],
  ['token ids alone', data({ choices: [{ index: 0, delta: {}, token_ids: [1] }], prompt_token_ids: [1] })],
  ['prompt progress', data({ choices: [], prompt_progress: { total: 3 } })],
  ['a usage chunk', usageOf({ prompt_tokens: 1, completion_tokens: 1 })],
  ['a comment', ': ping\n\n'],
  ['[DONE]', 'data: [DONE]\n\n'],
  ['an error', data({ error: { message: 'x' } })],
  ['no JSON', 'data: {"choices":[{"delta":{"content":"x"\n\n'],
  ['output that is quoted', data({ text: '{"choices":[{"delta":{"content":"x"}}]}' })],
];

describe('the first token', () => {
  test.for(OUTPUT)('comes with %s', ([, event]) => {
    expect(tapped([[1010, event]]).ttft_ms).toBe(10);
  });

  test.for(NO_OUTPUT)('does not come with %s', ([, event]) => {
    const record = tapped([
      [1010, event],
      [1030, delta({ content: 'x' })],
    ]);
    expect(record).toMatchObject({ ttft_ms: 30 });
    expect(record).not.toHaveProperty('gap_p50_ms');
    expect(tapped([[1010, event]])).not.toHaveProperty('ttft_ms');
  });

  test('counts from the read that completes its event', () => {
    const event = delta({ content: 'x' });
    const record = tapped([
      [1010, event.slice(0, 20)],
      [1025, event.slice(20)],
    ]);
    expect(record.ttft_ms).toBe(25);
  });
});

describe('the gaps', () => {
  test('are those between events with output; what comes between them does not count', () => {
    const record = tapped([
      [1010, delta({ role: 'assistant' })],
      [1100, delta({ reasoning: 'x' })],
      [1105, ': ping\n\n'],
      [1110, delta({ content: 'x' })],
      [1115, delta({})],
      [1140, delta({ content: 'x' })],
      [1900, `${usageOf({ prompt_tokens: 1, completion_tokens: 3 })}data: [DONE]\n\n`],
    ]);
    expect(record).toMatchObject({ ttft_ms: 100, gap_p50_ms: 20, gap_p95_ms: 29 });
  });

  test('between events of one read are zero', () => {
    const record = tapped([[1010, delta({ content: 'x' }) + delta({ content: 'y' })]]);
    expect(record).toMatchObject({ ttft_ms: 10, gap_p50_ms: 0, gap_p95_ms: 0 });
  });
});

describe('the tokens per second', () => {
  const stream = (usage: object | null, ...arrivalsMs: readonly number[]) =>
    tapped([
      [1010, delta({ role: 'assistant' })],
      ...arrivalsMs.map((ms): [number, string] => [ms, delta({ content: 'x' })]),
      [9000, `${usage === null ? '' : usageOf(usage)}data: [DONE]\n\n`],
    ]);

  test('are those after the first token, from the first event with output to the last', () => {
    expect(stream({ completion_tokens: 5 }, 1100, 1300).tokens_per_second).toBe(20);
    expect(stream({ completion_tokens: 2 }, 1100, 1150, 1200).tokens_per_second).toBe(10);
  });

  test.for<[string, object | null, ...number[]]>([
    ['without usage', null, 1100, 1300],
    ['with one token', { completion_tokens: 1 }, 1100, 1300],
    ['with none', { completion_tokens: 0, prompt_tokens: 3 }, 1100, 1300],
    ['with a count that is no count', { completion_tokens: -5, prompt_tokens: 3 }, 1100, 1300],
    ['with a count as text', { completion_tokens: '5' }, 1100, 1300],
    ['with one event', { completion_tokens: 5 }, 1100],
    ['with all events at the same time', { completion_tokens: 5 }, 1100, 1100],
    ['without output', { completion_tokens: 5 }],
  ])('are not known %s', ([, usage, ...arrivalsMs]) => {
    expect(stream(usage, ...arrivalsMs)).not.toHaveProperty('tokens_per_second');
  });

  test('are finite, whatever the engine counts', () => {
    const { tokens_per_second } = stream({ completion_tokens: Number.MAX_SAFE_INTEGER }, 1100, 1100.000001);
    expect(Number.isFinite(tokens_per_second)).toBe(true);
  });
});

const SPELLINGS: readonly (readonly [string, object, object])[] = [
  [
    'audio and images of OpenAI and SGLang',
    {
      prompt_tokens_details: { audio_tokens: 5, image_tokens: 7, video_tokens: 9 },
      completion_tokens_details: { audio_tokens: 3 },
    },
    { prompt_audio_tokens: 5, prompt_image_tokens: 7, completion_audio_tokens: 3 },
  ],
  [
    'details that are no counts',
    {
      prompt_tokens_details: { audio_tokens: -1, image_tokens: '7', multimodal_tokens: { image: 1e300 } },
      completion_tokens_details: { audio_tokens: 0.5, image_tokens: 3 },
    },
    { prompt_audio_tokens: undefined, prompt_image_tokens: undefined, completion_audio_tokens: undefined },
  ],
  [
    'audio and images of vLLM',
    { prompt_tokens_details: { cached_tokens: 1, multimodal_tokens: { image: 1196, audio: 0, video: 4 } } },
    { cached_tokens: 1, prompt_audio_tokens: 0, prompt_image_tokens: 1196 },
  ],
  ['OpenAI, vLLM, llama.cpp', { prompt_tokens_details: { cached_tokens: 5 } }, { cached_tokens: 5 }],
  ['an explicit zero', { prompt_tokens_details: { cached_tokens: 0 } }, { cached_tokens: 0 }],
  ['DeepSeek', { prompt_cache_hit_tokens: 5, prompt_cache_miss_tokens: 4 }, { cached_tokens: 5 }],
  ['Moonshot', { cached_tokens: 5 }, { cached_tokens: 5 }],
  ['the Responses API', { input_tokens_details: { cached_tokens: 5 } }, { cached_tokens: 5 }],
  ['Anthropic', { cache_read_input_tokens: 5 }, { cached_tokens: 5 }],
  ['details that are null', { prompt_tokens_details: null }, { cached_tokens: undefined }],
  ['a figure that is null', { prompt_tokens_details: { cached_tokens: null } }, { cached_tokens: undefined }],
  ['none', {}, { cached_tokens: undefined, reasoning_tokens: undefined }],
  [
    'reasoning tokens of OpenAI',
    { completion_tokens_details: { reasoning_tokens: 3 } },
    { reasoning_tokens: 3 },
  ],
  ['reasoning tokens of SGLang', { reasoning_tokens: 3 }, { reasoning_tokens: 3 }],
  [
    'a figure that is no count',
    { reasoning_tokens: -1, cached_tokens: 1.5 },
    { reasoning_tokens: undefined, cached_tokens: undefined },
  ],
];

describe('usage', () => {
  test.for(SPELLINGS)('in the spelling of %s: the same in a stream and without', ([, more, expected]) => {
    const usage = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13, ...more };
    for (const record of [
      tapped([[1010, usageOf(usage)]]),
      tappedJson(JSON.stringify({ choices: [], usage })),
    ]) {
      expect(record).toMatchObject({ prompt_tokens: 9, completion_tokens: 4 });
      for (const [name, value] of Object.entries(expected)) {
        expect(record[name as keyof RequestRecord], name).toBe(value);
      }
    }
  });

  test('is the last real one: zeros and nulls after it do not undo it', () => {
    const real = { prompt_tokens: 9, completion_tokens: 4 };
    const record = tapped([
      [1010, data({ choices: [{ index: 0, text: 'x' }], usage: { prompt_tokens: 0, completion_tokens: 0 } })],
      [1020, usageOf(real)],
      [1030, data({ choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } })],
      [1040, data({ choices: [], usage: null })],
    ]);
    expect(record).toMatchObject(real);
  });

  const ZEROS = { prompt_tokens: 0, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 0 } };
  const emptyEnd = (index: number) =>
    data({ choices: [{ text: '', index, finish_reason: 'stop' }], usage: ZEROS });

  test('of an empty prompt at llama.cpp is zero, as the engine says, for one choice and for two', () => {
    const zero = { prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0 };
    expect(tapped([[1010, `${emptyEnd(0)}data: [DONE]\n\n`]])).toMatchObject(zero);
    expect(tapped([[1010, data({ choices: [], usage: ZEROS })]])).toMatchObject(zero);
    const ofTwo = { choicesPerPrompt: 2, isTotalPerChoice: true };
    expect(tapped([[1010, emptyEnd(0) + emptyEnd(1)]], ofTwo)).toMatchObject(zero);
  });

  test('is unknown, not zero, where zeros stand beside output or before the end', () => {
    const choice = (more: object) => data({ choices: [{ text: '', index: 0, ...more }], usage: ZEROS });
    for (const events of [
      choice({ text: 'x' }) + choice({ finish_reason: 'stop' }),
      choice({ text: 'x', finish_reason: 'stop' }),
      choice({}),
    ]) {
      expect(tapped([[1010, events]])).not.toHaveProperty('prompt_tokens');
    }
    const real = { prompt_tokens: 9, completion_tokens: 0 };
    expect(tapped([[1010, emptyEnd(0) + usageOf(real)]])).toMatchObject(real);
    expect(tapped([[1010, usageOf(real) + emptyEnd(0)]])).toMatchObject(real);
  });

  const running = (index: number, completion_tokens: number) =>
    data({ choices: [{ index, delta: { content: 'x' } }], usage: { prompt_tokens: 9, completion_tokens } });

  test('of a cut stream with running figures is summed over its choices, the prompt once', () => {
    const events = [running(0, 1), running(1, 1), running(0, 2), running(1, 3)].join('');
    expect(tapped([[1010, events]], { choicesPerPrompt: 2 })).toMatchObject({
      prompt_tokens: 9,
      completion_tokens: 5,
    });
  });

  test('of a cut stream without chunks of one choice still counts the prompt once', () => {
    expect(tapped([[1010, running(1, 2)]], { choicesPerPrompt: 2 })).toMatchObject({
      prompt_tokens: 9,
      completion_tokens: 2,
    });
  });

  test('with running figures and a total is the total', () => {
    const events = running(0, 1) + running(1, 3) + usageOf({ prompt_tokens: 9, completion_tokens: 6 });
    expect(tapped([[1010, events]], { choicesPerPrompt: 2 })).toMatchObject({ completion_tokens: 6 });
  });

  test('of several prompts counts each of them', () => {
    const events = [0, 1, 2, 3].map((index) => running(index, 2)).join('');
    expect(tapped([[1010, events]], { choicesPerPrompt: 2 })).toMatchObject({
      prompt_tokens: 18,
      completion_tokens: 8,
    });
  });

  test('in content, tool arguments or another member is text', () => {
    const events =
      delta({ content: '"usage":{"prompt_tokens":9}' }) +
      delta({
        tool_calls: [{ function: { arguments: '{"usage":{"prompt_tokens":9}}' } }],
        usage: { prompt_tokens: 9 },
      });
    expect(tapped([[1010, events]])).not.toHaveProperty('prompt_tokens');
  });
});

describe('finish reasons and timings', () => {
  test('stand in the order of the choices', () => {
    const finish = (index: number, finish_reason: string) =>
      data({ choices: [{ index, delta: {}, finish_reason }] });
    expect(tapped([[1010, finish(1, 'length') + finish(0, 'stop')]]).finish_reasons).toEqual([
      'stop',
      'length',
    ]);
    const choices = [
      { index: 1, finish_reason: 'tool_calls' },
      { index: 0, finish_reason: 'stop' },
    ];
    expect(tappedJson(JSON.stringify({ choices })).finish_reasons).toEqual(['stop', 'tool_calls']);
  });

  test('that are not plain words are ignored: they could be text', () => {
    const choices = [{ index: 0, delta: {}, finish_reason: 'my secret prompt' }];
    expect(tapped([[1010, data({ choices })]])).not.toHaveProperty('finish_reasons');
  });

  test.for(['timings', 'metrics'])('of the engine come from %s, numbers only', (member) => {
    const timings = { prompt_ms: 0.5, note: 'text', nested: { x: 1 }, 'with space': 1, predicted_n: 3 };
    const expected = { prompt_ms: 0.5, predicted_n: 3 };
    const usage = { prompt_tokens: 1, completion_tokens: 1 };
    expect(tapped([[1010, data({ choices: [], usage, [member]: timings })]]).timings).toEqual(expected);
    expect(tappedJson(JSON.stringify({ choices: [], [member]: timings })).timings).toEqual(expected);
  });

  // As vllm-project/vllm#48915 describes it, with `--per-request-spec-decode-metrics detailed`.
  const SPECULATION = {
    mean_acceptance_length: 1.25,
    draft_acceptance_rate: 0.0775,
    acceptance_histogram: [39, 1, 0, 3],
    num_spec_steps: 43,
    num_accepted_draft_tokens: 10,
    num_draft_tokens: 129,
    num_spec_tokens: 3,
    per_step_accepted: [0, 3, 1],
  };

  test('have the speculative decoding of vLLM: drafted, accepted, and how many steps accepted how many', () => {
    const metrics = { queue_time: 0.5, speculative_decoding: SPECULATION };
    const { acceptance_histogram: histogram, per_step_accepted: _, ...figures } = SPECULATION;
    const expected = {
      queue_time: 0.5,
      ...Object.fromEntries(
        Object.entries(figures).map(([key, value]) => [`speculative_decoding.${key}`, value]),
      ),
      ...Object.fromEntries(
        histogram.map((steps, accepted) => [`speculative_decoding.acceptance_histogram.${accepted}`, steps]),
      ),
    };
    const usage = { prompt_tokens: 1, completion_tokens: 1 };
    expect(tapped([[1010, data({ choices: [], usage, metrics })]]).timings).toEqual(expected);
    expect(tappedJson(JSON.stringify({ choices: [], metrics })).timings).toEqual(expected);
  });

  test('stay few, whatever the engine says of its speculative decoding', () => {
    const acceptance_histogram = Array.from({ length: 40 }, () => 1);
    const speculative_decoding = { acceptance_histogram, x: { y: 1 } };
    const timings =
      tappedJson(JSON.stringify({ choices: [], metrics: { speculative_decoding } })).timings ?? {};
    expect(Object.keys(timings)).toHaveLength(32);
  });
});

describe('a JSON answer', () => {
  const choicesOf = (...choices: readonly string[]) => `{"choices":[${choices.join()}]}`;

  test.for([
    [
      'in the place that its index names',
      choicesOf('{"index":2,"finish_reason":"stop"}'),
      ['unknown', 'unknown', 'stop'],
    ],
    ['in its own place without an index', choicesOf('null', '{"finish_reason":"stop"}'), ['unknown', 'stop']],
    [
      'in its own place if the index is a string',
      choicesOf('{"index":"7","finish_reason":"stop"}'),
      ['stop'],
    ],
    ['nowhere if the index is no count', choicesOf('{"index":0.5,"finish_reason":"stop"}'), undefined],
    ['by the last of several indexes', choicesOf('{"index":3,"index":0,"finish_reason":"stop"}'), ['stop']],
    [
      'by the last of several lists',
      `{"choices":[{"finish_reason":"no"}],${choicesOf('{"finish_reason":"stop"}').slice(1)}`,
      ['stop'],
    ],
    ['with escapes in its name', choicesOf('{"f\\u0069nish_reason":"st\\u006fp"}'), ['stop']],
  ] as const)('has a finish reason %s', ([, text, expected]) => {
    expect(tappedJson(text).finish_reasons).toEqual(expected);
  });

  test.for([
    ['the later one of timings and metrics', '{"metrics":{"a":1},"timings":{"b":2}}', { timings: { b: 2 } }],
    ['the same the other way round', '{"timings":{"b":2},"metrics":{"a":1}}', { timings: { a: 1 } }],
    ['no usage if the last is null', '{"usage":{"prompt_tokens":1},"usage":null}', {}],
    ['no usage that is no JSON', '{"usage":{"prompt_tokens":NaN}}', {}],
    ['no usage that is not over', '{"usage":{"prompt_tokens":1', {}],
    ['usage before what is no JSON', '{"usage":{"prompt_tokens":1},"x":tru}', { prompt_tokens: 1 }],
    ['usage before a second text', '{"usage":{"prompt_tokens":1}}{"usage":null}', { prompt_tokens: 1 }],
  ] as const)('says %s', ([, text, expected]) => {
    expect(tappedJson(text)).toEqual(expected);
  });

  test('says the same wherever its reads are cut, whether it is JSON or not', () => {
    const scalar = fc.constantFrom(
      ...['null', 'true', '0', '1', '-0', '7.0', '1e2', '1e999', 'NaN', '"stop"', '"a\\"b"', '"st\\u006fp"'],
    );
    const key = fc.constantFrom(
      ...[
        'usage',
        'timings',
        'metrics',
        'choices',
        'index',
        'finish_reason',
        'prompt_tokens',
        'us\\u0061ge',
        'x',
      ].map((name) => `"${name}"`),
    );
    const space = fc.constantFrom('', '', ' ', '\n\t');
    const { value } = fc.letrec<{ value: string }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        scalar,
        fc
          .array(fc.tuple(space, tie('value')), { maxLength: 3 })
          .map((items) => `[${items.map((item) => item.join('')).join()}]`),
        fc
          .array(fc.tuple(space, key, space, fc.constant(':'), space, tie('value'), space), { maxLength: 4 })
          .map((members) => `{${members.map((member) => member.join('')).join()}}`),
      ),
    }));
    const finished = fc
      .tuple(scalar, scalar)
      .map(([index, reason]) => `{"index":${index},"finish_reason":${reason}}`);
    const answer = fc
      .array(
        fc.oneof(
          fc.tuple(key, value),
          fc.tuple(
            fc.constant('"choices"'),
            fc.array(finished, { maxLength: 3 }).map((list) => `[${list.join()}]`),
          ),
        ),
        { maxLength: 5 },
      )
      .map((members) => `{${members.map((member) => member.join(':')).join()}}`);
    const scrap = fc.array(
      fc.constantFrom(...'{}[]:,"\\ 1n'.split(''), '"usage"', '"choices":[{', '"finish_reason":"stop"'),
      { maxLength: 6 },
    );
    const damaged = fc.tuple(answer, fc.nat(400), fc.nat(9), scrap).map(([text, at, count, pieces]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + pieces.join('') + text.slice(place + count);
    });
    // Each is cut at every byte; the fuzzer (`usage`) reads a million.
    fc.assert(
      fc.property(fc.oneof(answer, damaged), (text) => void tappedJson(text)),
      { numRuns: runs(150) },
    );
  });
});

describe('an answer of 30 MB of embeddings', () => {
  const vector = Buffer.from(
    `{"object":"embedding","index":0,"embedding":[${'0.0123456789,'.repeat(10_000)}1]},`,
  );
  const usage = '"usage":{"prompt_tokens":7,"total_tokens":7}';

  test.for([
    ['before the data', `{"object":"list","model":"m",${usage},"data":[`, '{}]}'],
    ['after the data', '{"object":"list","data":[', `{}],"model":"m",${usage}}`],
  ] as const)('says its usage %s, and none of its bytes are kept', ([, head, tail]) => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const tap = new JsonTap(toReading());
    const passed: WeakRef<Buffer>[] = [];
    tap.push(Buffer.from(head));
    for (let sentBytes = 0; sentBytes < 30_000_000; sentBytes += vector.length) {
      const chunk = Buffer.from(vector);
      passed.push(new WeakRef(chunk));
      tap.push(chunk);
    }
    return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      collectGarbage();
      expect(passed.filter((chunk) => chunk.deref() !== undefined)).toHaveLength(0);
      tap.push(Buffer.from(tail));
      const record: Partial<RequestRecord> = {};
      tap.fill(record);
      expect(record).toEqual({ prompt_tokens: 7, response_model: 'm' });
    });
  });
});

test.each(['', '{', '{}', '[]', '{"id":null}'])(
  'an answer that tells nothing has no usage and no id: %j',
  (text) => {
    const tap = new JsonTap(toReading());
    tap.push(Buffer.from(text));
    expect([tap.usage, tap.responseId, tap.state]).toStrictEqual([{}, null, null]);
  },
);

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import type { Engine } from '#replicas/terms';
import { readCapture } from '#testkit/reading/captures.ts';
import { createEventRelay, undoRulesOf } from '#testkit/reading/response-reading.ts';
import { runs } from '#testkit/runs.ts';

interface Relayed {
  readonly text: string;
  readonly record: Partial<RequestRecord>;
}

interface Case {
  readonly engine: Engine;
  readonly endpoint?: '/v1/chat/completions' | '/v1/completions';
  readonly continuousUsageStats?: boolean;
  readonly n?: number;
  readonly isInjected?: boolean;
}

function relay(reads: readonly Buffer[], what: Case, maxEventBytes = 1024 * 1024): Relayed {
  const { engine, endpoint = '/v1/chat/completions', continuousUsageStats = false, n = 1 } = what;
  const undo =
    what.isInjected === false ? null : undoRulesOf(engine, { path: endpoint, continuousUsageStats });
  const isTotalPerChoice = engine === 'llamacpp';
  const { tap, events } = createEventRelay({ maxEventBytes, undo, choicesPerPrompt: n, isTotalPerChoice });
  const out: Buffer[] = [];
  reads.forEach((read, i) => {
    out.push(...events.push(read, i));
  });
  out.push(...events.end());
  const record: Partial<RequestRecord> = {};
  tap.fill(record);
  return { text: Buffer.concat(out).toString('utf8'), record };
}

function cutAt(whole: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [...new Set(places.map((place) => place % (whole.length + 1)))].sort((a, b) => a - b);
  return [0, ...sorted].map((from, i) => whole.subarray(from, sorted[i] ?? whole.length));
}

/** The events of a captured stream as values, without what differs from one answer to the next. */
function eventsOf(text: string): unknown[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => {
      const data = event.replace(/^data: /, '');
      if (data === '[DONE]') return data;
      const { id, created, timings, ...rest } = JSON.parse(data) as Record<string, unknown>;
      return { ...rest, members: Object.keys(JSON.parse(data) as object), hasTimings: timings !== undefined };
    });
}

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const USAGE = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
const DONE = 'data: [DONE]\n\n';
const delta = (content: string, more: object = {}) =>
  event({ id: 'c', choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more });

describe('undoing our include_usage', () => {
  test.each([
    ['llamacpp', 'llama', '/v1/chat/completions'],
    ['vllm', 'vllm', '/v1/chat/completions'],
  ] as const)(
    'a captured %s stream with usage becomes what the engine sends without',
    (engine, folder, endpoint) => {
      const asked = readCapture(`${folder}/chat-stream-usage`);
      const unasked = readCapture(`${folder}/chat-stream-nousage`);
      fc.assert(
        fc.property(fc.array(fc.nat(10_000), { maxLength: 8 }), (places) => {
          const { text, record } = relay(cutAt(asked.body, places), { engine, endpoint });
          expect(eventsOf(text)).toEqual(eventsOf(unasked.body.toString('utf8')));
          expect(record).toMatchObject({
            prompt_tokens: 28,
            completion_tokens: 12,
            finish_reasons: ['length'],
          });
        }),
        { numRuns: runs(300) },
      );
    },
  );

  test('llama.cpp puts its timings on the finishing event again, byte for byte as on the usage chunk', () => {
    const { text } = relay([readCapture('llama/chat-stream-usage').body], { engine: 'llamacpp' });
    const timings = /"timings":\{[^}]*\}/.exec(
      readCapture('llama/chat-stream-usage').body.toString('utf8'),
    )?.[0];
    expect(text).toContain(`"object":"chat.completion.chunk",${timings}}\n\ndata: [DONE]`);
    expect(text).not.toContain('"usage"');
  });

  test('llama.cpp with n = 2 sends a usage chunk a choice: both go, and their tokens are summed', () => {
    const { text, record } = relay([readCapture('llama/chat-stream-n2').body], { engine: 'llamacpp', n: 2 });
    expect(text).not.toContain('"choices":[]');
    expect(text.match(/"timings"/g)).toHaveLength(2);
    expect(record).toMatchObject({ prompt_tokens: 28, completion_tokens: 8, cached_tokens: 27 });
  });

  test('vLLM running usage is cut from every chunk when only our include_usage switched it on', () => {
    const { text, record } = relay([readCapture('vllm/chat-stream-continuous-usage').body], {
      engine: 'vllm',
      continuousUsageStats: true,
    });
    expect(text).not.toContain('"usage"');
    expect(record).toMatchObject({ prompt_tokens: 28, completion_tokens: 6 });
  });

  test('llama.cpp completions carry usage on the finishing event unasked: it stays', () => {
    const { body } = readCapture('llama/completions-stream-usage');
    const { text, record } = relay([body], { engine: 'llamacpp', endpoint: '/v1/completions' });
    expect(text).toBe(body.toString('utf8'));
    expect(record).toMatchObject({ prompt_tokens: 2, completion_tokens: 8, cached_tokens: 1 });
  });

  test.each([
    ['null on OpenAI', 'openai', '/v1/chat/completions', null],
    ['zeros on Ollama completions', 'ollama', '/v1/completions', { prompt_tokens: 0, completion_tokens: 0 }],
  ] as const)(
    'the usage member of other chunks is cut with its comma: %s',
    (_name, engine, endpoint, usage) => {
      const stream = delta('a', { usage }) + event({ id: 'c', choices: [], usage: USAGE }) + DONE;
      const { text } = relay([Buffer.from(stream)], { engine, endpoint });
      expect(text).toBe(delta('a') + DONE);
    },
  );

  test('a usage member that is first, or alone between white space, leaves a valid object', () => {
    const stream = 'data: {"usage":null , "choices":[{"index":0,"delta":{"content":"a"}}]}\n\n';
    const { text } = relay([Buffer.from(stream)], { engine: 'openai' });
    expect(text).toBe('data: { "choices":[{"index":0,"delta":{"content":"a"}}]}\n\n');
  });

  test('an unusual member of the usage chunk keeps the chunk: only its usage is cut', () => {
    const stream = event({ choices: [], sglext: { x: 1 }, usage: USAGE });
    const { text } = relay([Buffer.from(stream)], { engine: 'sglang' });
    expect(text).toBe(event({ choices: [], sglext: { x: 1 } }));
  });

  test.each([
    ['SGLang completions send usage:null unasked', 'sglang', delta('a', { usage: null })],
    ['a chunk with empty choices and no usage', 'sglang', event({ choices: [], sglext: 1 })],
    ['usage inside tool arguments is text', 'openai', delta('{"usage":null}')],
    ['a comment', 'vllm', ': ping\n\n'],
    ['what is no JSON', 'vllm', 'data: {"broken\n\n'],
    [
      'the single event of a beam search',
      'vllm',
      event({ choices: [{ index: 0, text: 'x' }], usage: USAGE }),
    ],
  ] as const)('passes as it is: %s', (_name, engine, stream) => {
    expect(relay([Buffer.from(stream)], { engine, endpoint: '/v1/completions' }).text).toBe(stream);
  });

  test('usage chunks are withheld whatever ends their lines, also when the read ends within a CRLF', () => {
    for (const end of ['\n', '\r\n', '\r']) {
      const stream = Buffer.from(delta('a') + event({ choices: [], usage: USAGE }) + DONE);
      const whole = Buffer.from(stream.toString().replaceAll('\n', end));
      const expected = (delta('a') + DONE).replaceAll('\n', end);
      for (let cut = 0; cut <= whole.length; cut++) {
        expect(relay(cutAt(whole, [cut]), { engine: 'openai' }).text).toBe(expected);
      }
    }
  });

  test('a last usage chunk without blank line is withheld too', () => {
    const { text, record } = relay(
      [Buffer.from(delta('a') + event({ choices: [], usage: USAGE }).trimEnd())],
      {
        engine: 'openai',
      },
    );
    expect(text).toBe(delta('a'));
    expect(record).toMatchObject({ completion_tokens: 2 });
  });

  test('an event past the limit goes out raw, before it has ended', () => {
    const long = delta('x'.repeat(500));
    const { text } = relay(cutAt(Buffer.from(long + delta('b')), [100, 300]), { engine: 'openai' }, 200);
    expect(text).toBe(long + delta('b'));
  });
});

describe('without injection', () => {
  test('every read goes out as it came, at once', () => {
    const { events } = createEventRelay({ maxEventBytes: 1024 });
    for (const read of cutAt(readCapture('vllm/chat-stream-usage').body, [3, 500, 501, 900])) {
      expect(events.push(read, 0)).toEqual([read]);
    }
    expect(events.end()).toEqual([]);
  });
});

describe('what is held', () => {
  const create = (engine: Engine) =>
    createEventRelay({ maxEventBytes: 1024, undo: undoRulesOf(engine) }).events;
  const sent = (pieces: readonly Buffer[]) => Buffer.concat(pieces).toString('utf8');

  test('a partial event with a choice goes out at once where only the usage chunk matters', () => {
    const events = create('sglang');
    expect(sent(events.push(Buffer.from('data: {"choices":[{"index":0,"del'), 0))).toBe(
      'data: {"choices":[{"index":0,"del',
    );
    expect(events.isMidEvent).toBe(true);
    expect(sent(events.push(Buffer.from('ta":{}}]}\n\n'), 0))).toBe('ta":{}}]}\n\n');
    expect(events.isMidEvent).toBe(false);
  });

  test('a prefix that ends at the opening bracket of its choices shows nothing yet', () => {
    const usage = event({ id: 'c', choices: [], usage: USAGE });
    const events = create('sglang');
    const cut = usage.indexOf('[') + 1;
    expect(sent(events.push(Buffer.from(usage.slice(0, cut)), 0))).toBe('');
    expect(sent(events.push(Buffer.from(usage.slice(cut)), 0))).toBe('');
  });

  test.each([
    ['a second line of data', 'data: {"choices":\ndata: [{'],
    ['another field before the data', 'event: x\ndata: {"choices":[{"index":0'],
    ['choices that are no list', 'data: {"choices":{"x":[{"index":0'],
    ['choices further in', 'data: {"x":{"choices":[{"index":0'],
    ['choices in a string', 'data: {"x":"\\"choices\\":[{'],
    ['a list of something else', 'data: {"choices":[1,[{"index":0'],
  ])('a prefix shows nothing yet: %s', (_name, prefix) => {
    const events = create('sglang');
    for (const byte of Buffer.from(prefix)) expect(sent(events.push(Buffer.of(byte), 0))).toBe('');
    expect(sent(events.push(Buffer.from('\n\n'), 0))).toBe(`${prefix}\n\n`);
  });

  test.each([
    ['no object', 'data:  [', '{}]'],
    ['a choice behind something else', 'data: {"x":[{}], "choices" : [ {', '}]}'],
    ['a choice behind what is none', 'data: {"choices":[null,{', '}]}'],
  ])('byte by byte, what shows that an event passes lets it go: %s', (_name, prefix, rest) => {
    for (const next of ['', delta('a')]) {
      const events = create('sglang');
      const reads = [...Buffer.from(next + prefix)].map((byte) => sent(events.push(Buffer.of(byte), 0)));
      expect(reads.join('')).toBe(next + prefix);
      expect(sent(events.push(Buffer.from(rest), 0))).toBe(rest);
    }
  });

  test('[DONE] is never held', () => {
    expect(sent(create('vllm').push(Buffer.from('data: [DO'), 0))).toBe('data: [DO');
  });

  test('a finishing event waits for the next event, and can be released', () => {
    const events = create('vllm');
    const finishing = event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
    expect(sent(events.push(Buffer.from(finishing), 0))).toBe('');
    expect(events.isHolding).toBe(true);
    expect(sent(events.releaseHeld())).toBe(finishing);
    expect(events.isHolding).toBe(false);
    expect(
      sent(events.push(Buffer.from(event({ choices: [], usage: USAGE, system_fingerprint: 'f' })), 0)),
    ).toBe('');
  });
});

describe('the fingerprint of a finishing event of vLLM that is released before its usage chunk', () => {
  const sent = (pieces: readonly Buffer[]) => Buffer.concat(pieces).toString();
  const relayOf = (engine: Engine) => createEventRelay({ undo: undoRulesOf(engine) }).events;
  const finishing = (more: object = {}) =>
    event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], ...more });
  const first = event({ choices: [{ index: 0, delta: { role: 'assistant' } }], system_fingerprint: 'own' });

  test('is the one that the stream itself has shown, on whichever chunk', () => {
    const events = relayOf('vllm');
    expect(sent(events.push(Buffer.from(first), 0))).toBe(first);
    events.push(Buffer.from(finishing()), 0);
    expect(events.holdsForFingerprint).toBe(false);
    expect(sent(events.releaseHeld())).toBe(finishing({ system_fingerprint: 'own' }));
  });

  test('is waited for longer only where nothing has shown it, and nothing but the usage chunk can follow', () => {
    const events = relayOf('vllm');
    expect(events.holdsForFingerprint).toBe(false);
    events.push(Buffer.from(finishing()), 0);
    expect(events.holdsForFingerprint).toBe(true);
    events.releaseHeld();
    expect(events.holdsForFingerprint).toBe(false);

    const complete = relayOf('vllm');
    complete.push(Buffer.from(finishing({ system_fingerprint: 'own' })), 0);
    expect(complete.holdsForFingerprint).toBe(false);

    const ofTwo = createEventRelay({ undo: undoRulesOf('vllm'), choicesPerPrompt: 2 }).events;
    ofTwo.push(Buffer.from(finishing()), 0);
    expect([ofTwo.isHolding, ofTwo.holdsForFingerprint]).toEqual([true, false]);

    const ofLlama = relayOf('llamacpp');
    ofLlama.push(Buffer.from(finishing()), 0);
    expect([ofLlama.isHolding, ofLlama.holdsForFingerprint]).toEqual([true, false]);
  });
});

/**
 * Joined anew with each read, these would take minutes: the tests fail by their time-out, and need a tenth of a second
 * otherwise.
 */
describe('an event of 4 MB', () => {
  const SIZE = 4_000_000;
  const inSmallReads = (text: string) => {
    const whole = Buffer.from(text);
    return Array.from({ length: Math.ceil(whole.length / 16) }, (_, i) =>
      whole.subarray(i * 16, i * 16 + 16),
    );
  };
  const content = delta('x'.repeat(SIZE));
  const events = [
    ['without injection', 'openai', false, content],
    ['that has to be whole', 'vllm', true, content],
    ['whose beginning shows that it passes', 'sglang', true, content],
    [
      'whose beginning shows nothing',
      'sglang',
      true,
      event({ x: 'x'.repeat(SIZE), choices: [{ index: 0 }] }),
    ],
    ['that begins with blanks', 'sglang', true, content.replace('data: ', `data: ${' '.repeat(SIZE)}`)],
    ['of short lines of data', 'vllm', true, `${'data: x\n'.repeat(SIZE / 8)}\n`],
    ['of lines without anything', 'vllm', true, `${'data\n'.repeat(SIZE / 5)}\n`],
  ] as const;

  test.for(events)('%s is taken in reads of 16 bytes', ([, engine, isInjected, text]) => {
    const { text: relayed } = relay(inSmallReads(text + DONE), { engine, isInjected }, 3 * SIZE);
    expect(relayed === text + DONE).toBe(true);
  });

  test.for(events)('%s is taken when it is past the limit', ([, engine, isInjected, text]) => {
    const { text: relayed } = relay(inSmallReads(text + DONE), { engine, isInjected }, SIZE / 4);
    expect(relayed === text + DONE).toBe(true);
  });
});

import { describe, expect, test } from 'vitest';
import type { Engine } from '#replicas/terms';
import { createEventRelay, endpointAt, undoRulesOf } from '#testkit/reading/response-reading.ts';
import type { ResponseReading } from '../../../../src/proxy/response/response-reading.ts';
import type { UndoRules } from '../../../../src/proxy/response/undo-usage.ts';

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const USAGE = { prompt_tokens: 5, completion_tokens: 2 };
const ZEROS = { prompt_tokens: 0, completion_tokens: 0 };
const usageChunk = (more: object = {}) => event({ choices: [], usage: USAGE, ...more });
const DONE = 'data: [DONE]\n\n';
const COMMENT = `: ${'c'.repeat(200)}\n\n`;
const delta = (content: string, more: object = {}, index = 0) =>
  event({ choices: [{ index, delta: { content } }], ...more });
const finishing = (more: object = {}) =>
  event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], ...more });
const twoChoices = (more: object) => event({ choices: [{ text: 'a' }, { text: 'b' }], ...more });

/** The rules of an engine, or others. */
const rulesOf = (of: Engine | 'vllm, running' | UndoRules) => {
  if (typeof of === 'object') return of;
  return of === 'vllm, running' ? undoRulesOf('vllm', { continuousUsageStats: true }) : undoRulesOf(of);
};
type Of = Parameters<typeof rulesOf>[0];

function open(of: Of, settings: Partial<ResponseReading> = {}) {
  const { events, tap } = createEventRelay({ undo: rulesOf(of), ...settings });
  const send = (text: string) => events.push(Buffer.from(text), 1).map(String);
  return { events, tap, send };
}

/** What a client gets of a stream that comes in these pieces. */
function relay(pieces: readonly Buffer[], of: Of, maxEventBytes?: number): string {
  const { events } = open(of, maxEventBytes === undefined ? {} : { maxEventBytes });
  const out = pieces.flatMap((piece) => events.push(piece, 1));
  return Buffer.concat([...out, ...events.end()]).toString();
}

/** Each row: what it is, the rules, what the replica sends, what the client gets. */
const STREAMS: readonly (readonly [string, Of, string, string])[] = [
  ['an empty line at the beginning', 'openai', `\n${delta('a')}`, `\n${delta('a')}`],
  ['an empty line behind a usage chunk', 'openai', `${usageChunk()}\n${DONE}`, DONE],
  [
    'an empty line behind a comment behind a usage chunk',
    'openai',
    `${usageChunk()}: c\n\n\n${DONE}`,
    `: c\n\n\n${DONE}`,
  ],
  ['a chunk with nothing in it', 'vllm', event({ choices: [] }), event({ choices: [] })],
  [
    'a usage chunk that is an error',
    'openai',
    usageChunk({ object: 'error' }),
    event({ choices: [], object: 'error' }),
  ],
  ['nothing but a usage member', 'openai', 'data: {"usage":null}\n\n', 'data: {}\n\n'],
  [
    'the usage of a choice where it is not always cut',
    'openai',
    delta('a', { usage: USAGE }) + usageChunk(),
    delta('a', { usage: USAGE }),
  ],
  [
    'the usage of several choices',
    'vllm, running',
    twoChoices({ usage: USAGE }) + delta('a', { usage: USAGE }) + twoChoices({ usage: ZEROS }),
    twoChoices({ usage: USAGE }) + delta('a') + twoChoices({}),
  ],
  [
    'the usage of several choices without running usage',
    'vllm',
    twoChoices({ usage: USAGE }),
    twoChoices({ usage: USAGE }),
  ],
  [
    'a server that sends usage to everybody',
    'vllm',
    delta('a', { usage: USAGE }) + delta('b', { usage: null }) + finishing({ usage: USAGE }) + usageChunk(),
    delta('a', { usage: USAGE }) + delta('b', { usage: null }) + finishing({ usage: USAGE }) + usageChunk(),
  ],
  [
    'a server that writes zeros',
    'vllm',
    delta('a', { usage: ZEROS }) + finishing({ usage: ZEROS }) + usageChunk(),
    delta('a') + finishing(),
  ],
  [
    'other lines of an event whose usage is cut',
    'openai',
    `id: 1\r\n${delta('a', { usage: null }).replaceAll('\n', '\r\n')}`,
    `id: 1\r\n${delta('a').replaceAll('\n', '\r\n')}`,
  ],
  [
    'usage in data of several lines',
    'openai',
    'data: {"usage":null,\ndata: "choices":["é"]}\n\n',
    'data: {\ndata: "choices":["é"]}\n\n',
  ],
  [
    'a finishing event in data of several lines',
    'vllm',
    `${delta('a', { system_fingerprint: 'own' })}data: {"choices":[{"finish_reason":"stop"}],\ndata: "usage":null}\n\n${usageChunk()}`,
    `${delta('a', { system_fingerprint: 'own' })}data: {"choices":[{"finish_reason":"stop"}],\ndata: "usage":null}\n\n`,
  ],
  [
    'a finishing event and a comment',
    'vllm',
    `${finishing()}: c\n\n${usageChunk({ system_fingerprint: 'f' })}`,
    `${finishing()}: c\n\n`,
  ],
  [
    'a finishing event whose usage chunk has the fingerprint',
    'vllm',
    `: c\n\n${finishing({ usage: null, x: 1 })}${usageChunk({ system_fingerprint: 'f' })}`,
    `: c\n\n${finishing({ x: 1, system_fingerprint: 'f' })}`,
  ],
  [
    'a finishing event that has a fingerprint and no usage',
    'vllm',
    delta('a', { system_fingerprint: 'own' }) +
      finishing({ usage: null, system_fingerprint: 'f' }) +
      usageChunk(),
    delta('a', { system_fingerprint: 'own' }) + finishing({ system_fingerprint: 'f' }),
  ],
  [
    'a finishing event and one with another fingerprint',
    'vllm',
    delta('a', { system_fingerprint: 'own' }) + finishing() + delta('b', { system_fingerprint: 'f' }, 1),
    delta('a', { system_fingerprint: 'own' }) +
      finishing({ system_fingerprint: 'own' }) +
      delta('b', { system_fingerprint: 'f' }, 1),
  ],
  [
    'a finishing event of vLLM with a member of llama.cpp',
    'vllm',
    finishing({ __verbose: { a: 1 } }) + usageChunk({ system_fingerprint: 'f' }),
    finishing({ __verbose: { a: 1 }, system_fingerprint: 'f' }),
  ],
  [
    'a finishing event with its usage, which stays',
    'llamacpp',
    finishing({ usage: USAGE }) + usageChunk({ timings: { predicted_n: 1 } }),
    finishing({ usage: USAGE, timings: { predicted_n: 1 } }),
  ],
  [
    'a finishing event with __verbose',
    'llamacpp',
    `: c\n\n${finishing({ __verbose: { a: 1 } })}${usageChunk({ timings: { predicted_n: 1 } })}`,
    `: c\n\n${finishing({ timings: { predicted_n: 1 }, __verbose: { a: 1 } })}`,
  ],
  [
    'a finishing event after timings that are not its own',
    'llamacpp',
    delta('a', { timings: { predicted_n: 1 } }) + finishing() + DONE,
    delta('a', { timings: { predicted_n: 1 } }) + finishing() + DONE,
  ],
  ...(['before', 'behind'] as const).map(
    (place) =>
      [
        `a finishing event with __verbose, and usage ${place} it`,
        { usageChunk: 'withhold', cutUsage: 'placeholder', movedMember: 'timings', cutsTimings: false },
        `${COMMENT}${finishing(place === 'before' ? { usage: null, __verbose: 1 } : { __verbose: 1, usage: null })}${usageChunk({ timings: { predicted_n: 1 } })}`,
        `${COMMENT}${finishing({ timings: { predicted_n: 1 }, __verbose: 1 })}`,
      ] as const,
  ),
  [
    'events with running timings, and the finishing one whose timings the usage chunk has',
    { usageChunk: 'withhold', cutUsage: 'never', movedMember: 'timings', cutsTimings: true },
    delta('a', { timings: { predicted_n: 1 } }) +
      finishing() +
      usageChunk({ timings: { predicted_n: 1 } }) +
      DONE,
    delta('a') + finishing({ timings: { predicted_n: 1 } }) + DONE,
  ],
  [
    'an event that nothing is cut from, in parts',
    'sglang',
    delta('a') + delta('b') + usageChunk() + DONE,
    delta('a') + delta('b') + DONE,
  ],
];

describe('what a client gets in place of', () => {
  test.each(STREAMS)('%s, wherever the stream is cut', (_, of, given, expected) => {
    const whole = Buffer.from(given);
    expect(relay([whole], of)).toBe(expected);
    for (let cut = 0; cut <= whole.length; cut++)
      expect(relay([whole.subarray(0, cut), whole.subarray(cut)], of)).toBe(expected);
    expect(
      relay(
        Array.from(whole, (byte) => Buffer.of(byte)),
        of,
      ),
    ).toBe(expected);
  });

  test.each([
    [256, true],
    [257, false],
  ])('a finishing event without fingerprint, where one of %d bytes was shown', (size, isKept) => {
    const member = { system_fingerprint: 'f'.repeat(size - '"system_fingerprint":""'.length) };
    const shown = delta('a', member);
    expect(relay([Buffer.from(shown + finishing() + DONE)], 'vllm')).toBe(
      shown + finishing(isKept ? member : {}) + DONE,
    );
  });

  test('events larger than the limit, wherever the stream is cut', () => {
    const given = finishing() + delta('x'.repeat(90)) + delta('b') + usageChunk() + DONE;
    const expected = given.replace(usageChunk(), '');
    const whole = Buffer.from(given);
    for (const engine of ['vllm', 'sglang'] as const)
      for (let cut = 0; cut <= whole.length; cut += 3)
        for (const size of [1, 7, 80]) {
          const pieces = [whole.subarray(0, cut)];
          for (let at = cut; at < whole.length; at += size) pieces.push(whole.subarray(at, at + size));
          expect(relay(pieces, engine, 100)).toBe(expected);
        }
  });
});

describe('a relay that undoes usage', () => {
  test('is within an event once a part of it has gone out', () => {
    const held = open('vllm');
    expect([held.events.isMidEvent, held.events.heldCount]).toEqual([false, 0]);
    expect(held.send(delta('a').slice(0, -3))).toEqual([]);
    expect(held.events.isMidEvent).toBe(false);
    const passed = open('sglang');
    expect(passed.send(delta('a').slice(0, -3))).toEqual([delta('a').slice(0, -3)]);
    expect(passed.events.isMidEvent).toBe(true);
    const large = open('vllm', { maxEventBytes: 20 });
    expect(large.send(delta('a').slice(0, -3))).toEqual([delta('a').slice(0, -3)]);
    expect([large.events.isMidEvent, large.tap.isWhole]).toEqual([true, true]);
    expect(large.send(delta('a').slice(-3))).toEqual([delta('a').slice(-3)]);
    expect(large.events.isMidEvent).toBe(false);
  });

  test('sends no piece twice, and none without bytes, where an event outgrows the limit', () => {
    const { send, events } = open('sglang', { maxEventBytes: 60 });
    const text = delta('x'.repeat(50));
    expect(send(text.slice(0, 50))).toEqual([text.slice(0, 50)]);
    expect(send(text.slice(50, 70))).toEqual([text.slice(50, 70)]);
    expect(send(text.slice(70))).toEqual([text.slice(70)]);
    expect(events.end()).toEqual([]);
  });

  test('counts the events that it has held', () => {
    const { send, events } = open('vllm');
    send(finishing());
    expect([events.isHolding, events.heldCount]).toEqual([true, 1]);
    send(finishing());
    expect([events.isHolding, events.heldCount]).toEqual([true, 2]);
  });

  test('sends a finishing event at once where no member moves', () => {
    expect(open('openai').send(finishing())).toEqual([finishing()]);
  });

  test.each(['data: [DO', ': c\n\n'])('sends a held event before %j', (next) => {
    const { send } = open('vllm');
    expect(send(finishing())).toEqual([]);
    expect(send(next).join('')).toBe(finishing() + next);
  });

  test('sends bytes that lie side by side in one piece', () => {
    const text = delta('a') + delta('b') + usageChunk() + delta('c') + event({ other: 1 }) + delta('d');
    const bytes = Buffer.from(`..${text}`).subarray(2);
    const { events } = open('sglang');
    expect(events.push(bytes, 1).map(String)).toEqual(text.split(usageChunk()));
  });

  test('does not mistake bytes of two reads for neighbours', () => {
    const { events } = open('vllm');
    const first = Buffer.from(new ArrayBuffer(finishing().length));
    first.write(finishing());
    const second = Buffer.from(new ArrayBuffer(first.length + DONE.length), first.length);
    second.write(DONE);
    expect(events.push(first, 1)).toEqual([]);
    expect(events.push(second, 1).map(String)).toEqual([finishing(), DONE]);
  });

  test.each<readonly [string, Of]>([
    ['data: {"choices":[{"index":0', 'openai'],
    ['data: {"choices":[{"index":0', 'llamacpp'],
    ['data:\t {"x', 'openai'],
    ['data:\ndata: [1]', 'openai'],
    ['data:\rdata: [1]', 'openai'],
    ['data: {"choices":\ndata: [{"index":0', 'sglang'],
    ['data: {"choices":[\n{"index":0', 'sglang'],
    ['data: {"choices":[\r{"index":0\n', 'sglang'],
    ['data: {"choices":[\r\n{"index":0', 'sglang'],
  ])('holds %j of %j back, in one read and byte by byte', (text, of) => {
    expect(open(of).send(text)).toEqual([]);
    const { send } = open(of);
    expect([...text].flatMap(send)).toEqual([]);
  });

  test('lets a choice go whatever is behind its line', () => {
    const text = 'data: {"choices":[{"index":0\nid: 1';
    expect(open('sglang').send(text)).toEqual([text]);
  });

  test('has nothing left at the end of a stream without rules, whatever was too large', () => {
    const { events, tap } = createEventRelay({ maxEventBytes: 20 });
    const read = Buffer.from(delta('a').slice(0, -1));
    expect(events.push(read, 1)).toEqual([read]);
    expect([events.isMidEvent, tap.isWhole]).toEqual([true, true]);
    expect(events.end()).toEqual([]);
  });
});

describe('an event like the one before', () => {
  const lines = (more: string, value: string) => `${more}${value}`;
  const text = delta('a');

  test.each<readonly [string, string, number]>([
    ['says nothing new', text, 1],
    ['has a line of its own', lines('id: 1\n', text), 1],
    ['has usage', delta('a', { usage: USAGE }), 3],
    ['has timings', delta('a', { timings: { predicted_n: 1 } }), 3],
    ['has an error', delta('a', { error: 'no' }), 3],
    ['has an error line', lines('error: {}\n', text), 3],
    ['finishes', event({ choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }] }), 3],
    ['has data of several lines', text.replace('"choices"', '\ndata: "choices"'), 3],
    ['has no text', event({ choices: [] }), 3],
    ['has no data', ': c\n\n', 0],
  ])('is read only if it may say something new: one that %s', (_, given, expected) => {
    for (const undo of [null, undoRulesOf('openai')]) {
      const endpoint = endpointAt('/v1/chat/completions');
      let count = 0;
      const { events, tap } = createEventRelay({
        undo: given.includes('"usage"') ? null : undo,
        endpoint: {
          ...endpoint,
          readEvent: (...args) => {
            count++;
            return endpoint.readEvent(...args);
          },
        },
      });
      for (let i = 0; i < 3; i++) events.push(Buffer.from(given), i);
      expect(count).toBe(expected);
      expect(tap.outputCount).toBe(given.includes('content') ? 3 : 0);
    }
  });

  test('is known again after one of another kind', () => {
    const endpoint = endpointAt('/v1/chat/completions');
    const read: string[] = [];
    const { events } = createEventRelay({
      endpoint: {
        ...endpoint,
        readEvent: (data, ...args) => {
          read.push(data.bytes.toString('latin1', data.start, data.end));
          return endpoint.readEvent(data, ...args);
        },
      },
    });
    const ofTwoLines = text.replace('"choices"', '\ndata: "choices"');
    for (const each of [text, ofTwoLines, text]) events.push(Buffer.from(each), 1);
    expect(read).toHaveLength(2);
  });
});

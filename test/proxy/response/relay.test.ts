import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Fingerprint } from '#replicas';
import { toReading, undoRulesOf } from '#testkit/reading/response-reading.ts';
import { watchTimers } from '#testkit/timers.ts';
import { Fields } from '#wire/message';
import { toRelayedHead } from '../../../src/proxy/attempt/headers.ts';
import { RESPONSES } from '../../../src/proxy/endpoints/responses.ts';
import { Relay } from '../../../src/proxy/response/relay.ts';
import type { ResponseUse } from '../../../src/proxy/response/response-reading.ts';
import { responseOf } from '../../wire/heads.ts';
import { openExchange } from '../attempt/one-request.ts';

const JSON_LINE = 'Content-Type: application/json';
const STREAM = ['Content-Type: text/event-stream', 'Transfer-Encoding: chunked'];
const DONE = 'data: [DONE]\n\n';
const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

interface Options extends Partial<ResponseUse> {
  readonly status?: string;
  readonly admission?: { fieldLines(): string };
  readonly isWhole?: boolean;
}

/** A response with these lines on its way to a client, and what happens to its source. */
function open(lines: readonly string[], options: Options = {}) {
  const { status = '200 OK', reading = null, modelName = null, routeLines = '' } = options;
  const { admission, isWhole = false } = options;
  const opened = openExchange(undefined, { takesAll: true });
  const { exchange, http, written } = opened;
  if (admission !== undefined) exchange.admission = admission as unknown as typeof exchange.admission;
  const steps: string[] = [];
  const source = { pause: () => void steps.push('pause'), resume: () => void steps.push('resume') };
  const head = toRelayedHead(responseOf([`HTTP/1.1 ${status}`, ...lines], 'POST'));
  const relay = new Relay(
    exchange,
    head,
    { reading, modelName, routeLines },
    { source: isWhole ? null : source, arrivedMs: 5, fingerprint: new Fingerprint() },
  );
  const send = (text: string) => {
    relay.write(Buffer.from(text));
    relay.flush();
  };
  /** Ends the response, and resolves with all that the client got. */
  const end = (trailers: Fields | null = null) => {
    relay.end(trailers);
    exchange.outbox.flush();
    return http.text();
  };
  return { ...opened, relay, steps, send, end, exchange, writes: () => written.items };
}

describe('an answer', () => {
  test('goes out read by read, with its head in the first write and its end after the turn', () => {
    const { relay, send, writes, http } = open(['X-A: b', 'Content-Length: 5']);
    relay.write(Buffer.from('a'));
    relay.write(Buffer.from('b'));
    expect(writes()).toEqual([]);
    relay.flush();
    send('c');
    relay.write(Buffer.from('de'));
    relay.end(null);
    expect(writes()).toHaveLength(2);
    relay.sendOut();
    expect(writes()).toEqual([
      'HTTP/1.1 200 OK\r\nX-A: b\r\nX-Request-Id: id-1\r\nContent-Length: 5\r\n\r\nab',
      ...['c', 'de'],
    ]);
    expect(http.isKept).toBe(true);
  });

  test('has its head go out at once where no body came with it', () => {
    const { relay, writes } = open(['Content-Length: 5']);
    relay.flush();
    relay.flush();
    expect(writes()).toEqual(['HTTP/1.1 200 OK\r\nX-Request-Id: id-1\r\nContent-Length: 5\r\n\r\n']);
    relay.sendOut();
    expect(writes()).toHaveLength(1);
  });

  test('has the trailers that a client may get', () => {
    const { send, end } = open(['Transfer-Encoding: chunked', 'Connection: x-b']);
    send('a');
    const trailers = new Fields();
    for (const name of ['X-A', 'X-B', 'Host']) trailers.add(name, name.toLowerCase(), '1');
    expect(end(trailers)).toMatch(/\r\n0\r\nX-A: 1\r\n\r\n$/);
  });

  test('has the limits of its client in place of those of the replica', () => {
    const lines = ['X-RateLimit-Limit: 5', 'X-A: b', 'x-ratelimit-reset: 6', 'Content-Length: 0'];
    expect(open(lines).end()).toContain('X-RateLimit-Limit: 5\r\nX-A: b\r\nx-ratelimit-reset: 6\r\n');
    const admission = { fieldLines: () => 'X-RateLimit-Limit: 9\r\n' };
    expect(open(lines, { admission }).end()).toBe(
      'HTTP/1.1 200 OK\r\nX-A: b\r\nX-Request-Id: id-1\r\nX-RateLimit-Limit: 9\r\nContent-Length: 0\r\n\r\n',
    );
  });

  test('pauses its source while the client takes no more, until it does', () => {
    const { send, steps, pause, exchange } = open(['Content-Length: 5']);
    send('a');
    expect(steps).toEqual([]);
    pause(true);
    send('b');
    expect(steps).toEqual(['pause']);
    exchange.http.onDrain?.();
    expect(steps).toEqual(['pause', 'resume']);
  });
});

describe('an answer with another name for its model', () => {
  const named = { modelName: 'alias' };

  test('has the length that it gets, and goes out when it is complete', () => {
    const { send, end, writes } = open([JSON_LINE, 'Content-Length: 13'], named);
    send('{"model":');
    expect(writes()).toEqual([]);
    send('"m"}');
    expect(writes()).toEqual([]);
    expect(end()).toMatch(/\r\nContent-Length: 17\r\n\r\n\{"model":"alias"\}$/);
  });

  test('goes out in chunks where it is longer than is held', () => {
    const { send, end, writes } = open([JSON_LINE, 'Content-Length: 70000'], named);
    send('{"model":"m","x":"'.padEnd(64 * 1024 - 1, 'y'));
    expect(writes()).toEqual([]);
    send('z');
    expect(writes()[0]).toContain('\r\nTransfer-Encoding: chunked\r\n');
    expect(writes()[0]).toContain('{"model":"alias","x":"y');
    send('"}');
    expect(end().endsWith('2\r\n"}\r\n0\r\n\r\n')).toBe(true);
  });

  test.each([
    ['one without a body', [JSON_LINE, 'Content-Length: 13'], '204 No Content'],
    ['one without a length', [JSON_LINE, 'Transfer-Encoding: chunked'], '200 OK'],
    ['one that is compressed', [JSON_LINE, 'Content-Length: 13', 'Content-Encoding: gzip'], '200 OK'],
    ['one that is no JSON', ['Content-Type: text/plain', 'Content-Length: 13'], '200 OK'],
  ])('is not held where it is %s', (_, lines, status) => {
    const { relay, writes } = open(lines, { ...named, status });
    relay.flush();
    expect(writes()).toHaveLength(1);
  });

  test.each([
    ['compressed', [JSON_LINE, 'Content-Encoding: gzip']],
    ['no JSON', ['Content-Type: text/plain']],
  ])('is left as it is where it is %s', (_, lines) => {
    const { send, end } = open([...lines, 'Content-Length: 13'], named);
    send('{"model":"m"}');
    expect(end().endsWith('\r\n\r\n{"model":"m"}')).toBe(true);
  });

  test('has it in the events of a stream', () => {
    const { send, end } = open(STREAM, named);
    send(event({ model: 'm', choices: [] }));
    expect(end()).toContain('"model":"alias"');
  });

  test('goes out as far as it came where it breaks off', () => {
    const { relay, writes, exchange } = open([JSON_LINE, 'Content-Length: 99'], named);
    relay.write(Buffer.from('{"model":"m","x":1'));
    relay.breakOff('upstream_failed');
    expect(writes().join('')).toContain('{"model":"alias","x":1');
    expect([exchange.ending, exchange.isTruncated, exchange.isFinished]).toEqual([
      'upstream_failed',
      true,
      true,
    ]);
  });
});

describe('an answer that is read', () => {
  const answer = { id: 'r1', model: 'm', choices: [], usage: { prompt_tokens: 3, completion_tokens: 1 } };
  const body = JSON.stringify(answer);

  test('tells its record what it says', () => {
    const { relay, send, end } = open([JSON_LINE, `Content-Length: ${body.length}`], {
      reading: toReading(),
    });
    expect(relay.isEventStream).toBe(false);
    send(body);
    end();
    expect(relay.facts?.usage).toMatchObject({ promptTokens: 3, completionTokens: 1 });
  });

  test.each([
    ['nobody reads', [JSON_LINE], {}],
    ['is an error', [JSON_LINE], { reading: toReading(), status: '400 No' }],
    ['is compressed', [JSON_LINE, 'Content-Encoding: gzip'], { reading: toReading() }],
    ['is no JSON', ['Content-Type: text/plain'], { reading: toReading() }],
    ['is a stream that is compressed', [...STREAM, 'Content-Encoding: gzip'], { reading: toReading() }],
  ])('is not one that %s', (_, lines, options) => {
    const { relay, end } = open(lines, options);
    expect(relay.facts).toBeNull();
    end();
  });

  test.each([
    ['200 OK', ['r1']],
    ['299 Odd', ['r1']],
    ['300 Many', []],
  ])('tells its id to who wants it, once it is complete: %s', (status, expected) => {
    const ids: string[] = [];
    const reading = toReading({ endpoint: RESPONSES, onResponseId: (id) => ids.push(id) });
    const { send, end } = open([JSON_LINE, `Content-Length: ${body.length}`], { reading, status });
    send(body);
    expect(ids).toEqual([]);
    end();
    expect(ids).toEqual(expected);
  });

  test('tells the id of a stream when it comes, and once', () => {
    const ids: string[] = [];
    const reading = toReading({ endpoint: RESPONSES, onResponseId: (id) => ids.push(id) });
    const { relay, send, end } = open(STREAM, { reading });
    expect(relay.isEventStream).toBe(true);
    send(event({ type: 'response.in_progress' }));
    expect(ids).toEqual([]);
    send(event({ type: 'response.created', response: { id: 'r1', model: 'm' } }));
    expect(ids).toEqual(['r1']);
    send(event({ type: 'response.completed', response: { id: 'r1', model: 'm' } }));
    end();
    expect(ids).toEqual(['r1']);
  });
});

describe('a stream', () => {
  const delta = event({
    id: 'c',
    model: 'm',
    choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: null }],
  });

  test('goes out as it came, and tells when its output came', () => {
    const { relay, send, end, exchange } = open(STREAM, { reading: toReading() });
    send(delta);
    send(DONE);
    expect(end()).toContain(delta);
    expect([exchange.ending, exchange.isTruncated]).toEqual([null, false]);
    const fields: { ttft_ms?: number } = {};
    (relay.facts as { fill(fields: object): void }).fill(fields);
    expect(fields.ttft_ms).toBe(5);
  });

  test('that ends without its end mark is truncated, except in an error', () => {
    const cut = open(STREAM, { reading: toReading() });
    cut.send(delta);
    cut.end();
    expect([cut.exchange.ending, cut.exchange.isTruncated]).toEqual([null, true]);
    const error = open(STREAM, { reading: toReading(), status: '400 No' });
    error.send(delta);
    error.end();
    expect(error.exchange.isTruncated).toBe(false);
    const unread = open(STREAM);
    unread.send(delta);
    unread.end();
    expect(unread.exchange.isTruncated).toBe(false);
  });

  test('that tells an error is one of the replica', () => {
    const { send, end, exchange } = open(STREAM, { reading: toReading() });
    send(event({ error: { message: 'no' } }));
    end();
    expect([exchange.ending, exchange.isTruncated]).toEqual(['upstream_error', false]);
  });

  test.each([
    ['between events', delta, ''],
    ['in an event', delta.slice(0, -5), '\n\n'],
  ])('that breaks off %s ends with an error event', (_, text, between) => {
    const { relay, send, exchange, http } = open(STREAM, { reading: toReading() });
    send(text);
    relay.breakOff('upstream_timeout');
    expect([exchange.ending, exchange.isTruncated]).toEqual(['upstream_timeout', true]);
    const got = http.text().replaceAll(/[0-9a-f]+\r\n|\r\n/g, '');
    expect(got).toContain(`${text}${between}data: {"error":`);
    expect(http.text().endsWith('0\r\n\r\n')).toBe(true);
  });

  test('that has told an error and then breaks off ends for that error', () => {
    const { relay, send, exchange } = open(STREAM, { reading: toReading() });
    send(event({ error: { message: 'no' } }));
    relay.breakOff('upstream_failed');
    expect([exchange.ending, exchange.isTruncated]).toEqual(['upstream_error', true]);
  });

  test('that breaks off after its end mark is complete', () => {
    const { relay, send, exchange, http } = open(STREAM, { reading: toReading() });
    send(delta + DONE);
    relay.breakOff('upstream_failed');
    exchange.outbox.flush();
    expect([exchange.ending, exchange.isTruncated]).toEqual([null, false]);
    expect(http.text().endsWith('0\r\n\r\n')).toBe(true);
  });

  test('that nobody reads is cut where it breaks off', () => {
    const { relay, send, exchange, http } = open(STREAM);
    send(delta);
    relay.breakOff('upstream_failed');
    expect([exchange.isFinished, http.text().includes('error')]).toEqual([true, false]);
  });
});

describe('an answer that only the end of its connection ends', () => {
  const open200 = () => open([JSON_LINE], { reading: toReading() });

  test('is complete with its object, whatever breaks then, and not before', () => {
    const whole = open200();
    whole.send('{"id":"r1"}');
    whole.relay.breakOff('upstream_failed');
    whole.exchange.outbox.flush();
    expect([whole.exchange.ending, whole.exchange.isTruncated]).toEqual([null, false]);
    const part = open200();
    part.send('{"id":"r1"');
    part.relay.breakOff('upstream_failed');
    expect([part.exchange.ending, part.exchange.isTruncated]).toEqual(['upstream_failed', true]);
  });

  test('is not complete by its object where it has a length', () => {
    const { relay, send, exchange } = open([JSON_LINE, 'Content-Length: 99'], { reading: toReading() });
    send('{"id":"r1"}');
    relay.breakOff('upstream_failed');
    expect([exchange.ending, exchange.isTruncated]).toEqual(['upstream_failed', true]);
  });
});

describe('a finishing event that waits for the next one', () => {
  const finishing = event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
  const delta = event({ choices: [{ index: 0, delta: { content: 'a' } }] });
  const usage = event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } });

  function openHeld(engine: 'llamacpp' | 'vllm' = 'llamacpp') {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
    onTestFinished(() => void vi.useRealTimers());
    const opened = open(STREAM, { reading: toReading({ undo: undoRulesOf(engine) }) });
    const has = (text: string) => opened.http.text().includes(text);
    return { ...opened, has };
  }

  test.each([
    ['llamacpp', 50],
    ['vllm', 1000],
  ] as const)('goes out when its time is over: %s', (engine, holdMs) => {
    const { send, has } = openHeld(engine);
    send(finishing);
    vi.advanceTimersByTime(holdMs - 1);
    expect(has(finishing)).toBe(false);
    vi.advanceTimersByTime(2);
    expect(has(finishing)).toBe(true);
  });

  test('waits no longer for a part of the next one', () => {
    const { send, has } = openHeld();
    send(finishing);
    vi.advanceTimersByTime(40);
    send(delta.slice(0, -5));
    vi.advanceTimersByTime(12);
    expect(has(finishing)).toBe(true);
  });

  test('waits anew if it is another one', () => {
    const { send, has } = openHeld();
    send(finishing);
    vi.advanceTimersByTime(40);
    send(finishing.replace('stop', 'length'));
    expect(has(finishing)).toBe(true);
    vi.advanceTimersByTime(40);
    expect(has('length')).toBe(false);
    vi.advanceTimersByTime(12);
    expect(has('length')).toBe(true);
  });

  test('leaves no timer behind, whatever it ended with', () => {
    const timers = watchTimers('Timeout', 50);
    const openOne = () => open(STREAM, { reading: toReading({ undo: undoRulesOf('llamacpp') }) });
    const next = openOne();
    next.send(delta);
    expect(timers.set).toBe(0);
    next.send(finishing);
    expect(timers).toMatchObject({ set: 1, left: 1 });
    next.send(usage);
    expect([timers.left, next.http.text().includes(finishing)]).toEqual([0, true]);
    next.send(finishing);
    next.relay.stop();
    expect(timers).toMatchObject({ set: 2, left: 0 });
    const ended = openOne();
    ended.send(finishing);
    expect(ended.end()).toContain(finishing);
    expect(timers).toMatchObject({ set: 3, left: 0 });
    const broken = openOne();
    broken.send(finishing);
    broken.relay.breakOff('upstream_failed');
    expect(broken.http.text()).toContain(finishing);
    expect(timers).toMatchObject({ set: 4, left: 0 });
  });
});

describe('a response without more to it', () => {
  test('tells no id where it cannot be read', () => {
    const ids: unknown[] = [];
    const reading = toReading({ onResponseId: (id) => ids.push(id) });
    const { send, end } = open([JSON_LINE, 'Content-Encoding: gzip', 'Content-Length: 1'], { reading });
    send('a');
    end();
    expect(ids).toEqual([]);
  });

  test('has nothing to pause where all of it is here', () => {
    const { send, pause, exchange } = open(['Content-Length: 5'], { isWhole: true });
    pause(true);
    send('b');
    exchange.http.onDrain?.();
    expect(exchange.isFinished).toBe(false);
  });

  test('is cut where it breaks off and only its connection would say where it ends', () => {
    const { send, relay, exchange } = open(['Content-Type: text/plain']);
    send('a');
    relay.breakOff('upstream_failed');
    expect([exchange.ending, exchange.isTruncated]).toEqual(['upstream_failed', true]);
  });

  test('goes out once, and each read of it has its time', () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(42);
    onTestFinished(() => now.mockRestore());
    const { relay, send, http } = open(STREAM, { reading: toReading() });
    send(': c\n\n');
    const delta = event({ choices: [{ index: 0, delta: { content: 'a' } }] });
    send(delta);
    expect(http.text().split(delta)).toHaveLength(2);
    const fields: { ttft_ms?: number } = {};
    (relay.facts as { fill(fields: object): void }).fill(fields);
    expect(fields.ttft_ms).toBe(42);
  });
});

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { endpointAt } from '#testkit/reading/response-reading.ts';
import { createPrefixHasher } from '../../../../src/proxy/record/prefix-hashes.ts';
import {
  type BodyInspector,
  createBodyInspector,
} from '../../../../src/proxy/request/inspection/body-inspector.ts';
import { describeRequestText } from '../../../../src/proxy/request/inspection/request-text.ts';

const CHAT = endpointAt('/v1/chat/completions');
const settings = { salt: Buffer.from('sält'), blockChars: 16, maxBlocks: 9 };

function createInspector(): BodyInspector {
  const inspector = createBodyInspector(settings);
  onTestFinished(() => inspector.close());
  return inspector;
}

const bodyOf = (content: string) =>
  Buffer.from(JSON.stringify({ model: 'm', max_tokens: 7, messages: [{ role: 'user', content }] }));
const SMALL = bodyOf('Grüße');
const LARGE = bodyOf('Grüße, '.repeat(100_000));

/** The body in pieces as they may come: some own their memory, some share it. */
function inPieces(body: Buffer): Buffer[] {
  const half = Math.floor(body.length / 2);
  const own = Buffer.from(new ArrayBuffer(half));
  body.copy(own);
  return [own, body.subarray(half, half + 10), Buffer.from(body.subarray(half + 10))];
}

describe('a body inspector', () => {
  it('reads a small body directly', () => {
    const inspected = createInspector().inspect([SMALL], CHAT);
    expect(inspected).not.toBeInstanceOf(Promise);
    expect(inspected).toMatchObject({ bytes: SMALL, facts: { model: 'm', maxTokens: 7 } });
  });

  it('reads a body of 128 KiB directly, and one of many members in its thread', async () => {
    const inspector = createInspector();
    const empty = bodyOf('').length;
    const inspect = (body: Buffer) => inspector.inspect(inPieces(body), CHAT);
    expect(inspect(bodyOf('x'.repeat(128 * 1024 - empty)))).not.toBeInstanceOf(Promise);
    const larger = inspect(bodyOf('x'.repeat(128 * 1024 + 1 - empty)));
    expect(larger).toBeInstanceOf(Promise);
    await larger;

    const many = Buffer.from(
      `{"model":"m","messages":[${'0,'.repeat(4100)}{"content":"Grüße, wie geht es?"}]}`,
    );
    const inThread = inspect(many);
    expect(inThread).toBeInstanceOf(Promise);
    const { bytes, facts, describeText } = await inThread;
    expect(bytes.equals(many)).toBe(true);
    expect(describeText()).toEqual(describeRequestText(many, facts, CHAT, createPrefixHasher(settings)));
    expect(describeText()).toMatchObject({ promptChars: 19 });
  });

  it('refuses a body of many members that is not JSON at its end', async () => {
    const refused = createInspector().inspect(
      [Buffer.from(`{"model":"m","messages":[${'0,'.repeat(5000)}`)],
      CHAT,
    );
    await expect(refused).rejects.toMatchObject({ code: 'invalid_json' });
  });

  it('does not block the event loop while it reads a large body', async () => {
    let turnCount = 0;
    const countTurns = () => {
      turnCount++;
      turning = setImmediate(countTurns);
    };
    let turning = setImmediate(countTurns);
    onTestFinished(() => clearImmediate(turning));
    await createInspector().inspect(inPieces(LARGE), CHAT);
    expect(turnCount).toBeGreaterThan(0);
  });

  it('finds the same in small and large bodies, in one piece or several', async () => {
    const inspector = createInspector();
    const hasher = createPrefixHasher(settings);
    for (const body of [SMALL, LARGE]) {
      const inspected = await inspector.inspect(inPieces(body), CHAT);
      expect(inspected.bytes.equals(body)).toBe(true);
      expect(inspected.describeText()).toEqual(describeRequestText(body, inspected.facts, CHAT, hasher));
      expect(inspected.describeText().promptChars).toBeGreaterThan(4);
    }
  });

  it('gives each of several large bodies its own result', async () => {
    const inspector = createInspector();
    const contents = ['a', 'b', 'c'].map((letter) => letter.repeat(200_000));
    const inspected = await Promise.all(
      contents.map((content) => inspector.inspect([bodyOf(content)], CHAT)),
    );
    expect(inspected.map(({ bytes }) => bytes.toString())).toEqual(
      contents.map((content) => bodyOf(content).toString()),
    );
  });

  it('finishes small bodies before large ones that came first', async () => {
    const inspector = createInspector();
    const order: string[] = [];
    const inspect = async (name: string, body: Buffer) => {
      await inspector.inspect([body], CHAT);
      order.push(name);
    };
    const toSmall = (name: string) => [name, bodyOf('x'.repeat(200_000))] as const;
    const toLarge = (name: string) =>
      [name, Buffer.from(`{"model":"m","messages":[${'"a",'.repeat(2_000_000)}""]}`)] as const;
    // Made before any is sent: they come to the thread together.
    const [first, second] = [['a', 'b', 'c'].map(toSmall), ['d', 'e'].map(toSmall)];
    const larges = ['L1', 'L2', 'L3'].map(toLarge).map((large) => inspect(...large));
    await Promise.all(first.map((small) => inspect(...small)));
    // The thread is at the first of the large ones, or about to begin: these arrive in the meantime.
    await Promise.all(second.map((small) => inspect(...small)));
    await Promise.all(larges);

    expect(order.slice(0, 3)).toEqual(['a', 'b', 'c']);
    const places = (names: readonly string[]) => names.map((name) => order.indexOf(name));
    expect(Math.max(...places(['d', 'e']))).toBeLessThan(Math.min(...places(['L2', 'L3'])));
    expect(places(['L1', 'L2', 'L3'])).toEqual(places(['L1', 'L2', 'L3']).toSorted((a, b) => a - b));
  });

  it('finds the same in a body that gave way to others as in one that did not', async () => {
    const inspector = createInspector();
    const hasher = createPrefixHasher(settings);
    const contents = Array.from({ length: 6 }, (_, i) => `${i} Grüße, `);
    const bodies = contents.flatMap((content, i) => [
      Buffer.from(`{"model":"m","messages":[${'0,'.repeat(400_000)}{"content":"${content.repeat(9)}"}]}`),
      bodyOf(content.repeat(20_000 + i)),
    ]);
    const found = await Promise.all(bodies.map((body) => inspector.inspect([Buffer.from(body)], CHAT)));
    for (const [i, body] of bodies.entries()) {
      const inspected = found[i];
      if (inspected === undefined) throw new Error('not inspected');
      expect(inspected.bytes.equals(body)).toBe(true);
      expect(inspected.describeText()).toEqual(describeRequestText(body, inspected.facts, CHAT, hasher));
    }
  });

  it('refuses a body that is not JSON without quoting it', async () => {
    const inspector = createInspector();
    expect(() => inspector.inspect([Buffer.from('canary')], CHAT)).toThrow('invalid_json');
    const refused = inspector.inspect([Buffer.from('canary'.repeat(100_000))], CHAT);
    const failure = await Promise.resolve(refused).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'Failure', code: 'invalid_json' });
    expect(String(failure)).not.toContain('canary');
  });

  it('fails waiting requests when it is closed, and can be closed without ever having had a large body', async () => {
    await createBodyInspector(settings).close();
    const inspector = createBodyInspector(settings);
    const waiting = expect(inspector.inspect(inPieces(LARGE), CHAT)).rejects.toThrow('ended');
    await inspector.close();
    await waiting;
  });

  it('reads bodies alike without WebAssembly', async () => {
    const texts = [
      'lorem ipsum '.repeat(200),
      'a = "b";\n  if (x) {\n'.repeat(200),
      'Über 世界 😀 \\ '.repeat(900),
      `${'x'.repeat(20_000)}\u0000"`,
    ];
    const inspector = createInspector();
    const inspected = await Promise.all(
      texts.map(async (text) => await inspector.inspect([bodyOf(text)], CHAT)),
    );
    const workerData = { bodies: texts.map(bodyOf), settings };
    const thread = new Worker(new URL('without-webassembly.ts', import.meta.url), { workerData });
    const [descriptions] = await once(thread, 'message');
    expect(descriptions).toEqual(inspected.map((body) => body.describeText()));
    expect(descriptions[0].promptChars).toBe(2400);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readCapture } from '#testkit/reading/captures.ts';
import { ModelRewriter } from '../../../src/proxy/response/model-rewriter.ts';

const ALIAS = 'gpt "4o" é';
const WRITTEN = JSON.stringify(ALIAS);

/** What a client gets for an answer that comes in pieces that end at these offsets. */
function rewrite(text: string, isEventStream: boolean, cuts: readonly number[] = []): string {
  const bytes = Buffer.from(text);
  const edges = [0, ...cuts, bytes.length];
  const rewriter = new ModelRewriter(ALIAS, isEventStream);
  const out = edges.slice(1).flatMap((edge, i) => rewriter.rewrite([bytes.subarray(edges[i], edge)]));
  expect(out.every((piece) => piece.length > 0)).toBe(true);
  return Buffer.concat(out).toString();
}

const everyCut = (text: string) => Array.from({ length: Buffer.byteLength(text) }, (_, i) => i);

/** `§` stands for the name of the model that is replaced, with its quotes. */
const ANSWERS = [
  '{"model":§}',
  ' {\n "id" : "x" , "model" :\t§ }\n',
  '\ufeff{"model":§,"model":§}',
  '{"mod\\u0065l":§,"\\u006dodel":§}',
  '{"usage":{"model":"m"},"choices":[{"model":"m","message":{"model":"m"}}],"model":§}',
  '{"text":"\\"model\\":\\"m\\"","a\\\\":"model","model":§}',
  '{"response":{"id":"r","output":[{"model":"m"}],"model":§},"message":{"model":§,"x":{"model":"m"}}}',
  '{"response":[{"model":"m"}],"message":"model","other":{"model":"m"},"model":§}',
  '{"response":{"message":{"model":"m"},"model":§}}',
  '{"model":null,"a":1}',
  '{"model":{"model":"m"}}',
  '{"model":["m"],"b":"m"}',
  '["model","m",{"model":"m"}]',
  '"model"',
  '{"modelx":"m","mode":"m","":"m"}',
  `{"${'m'.repeat(10_000)}":"m","model":§}`,
  '{"error":{"message":"no model \\"m\\"","model":"m"}}',
  '',
] as const;

const NAMES = ['"m"', '""', '"org/llama-3.3-70b"', '"\\"\\\\"', '"\\u0041\u00e9😀"'];

describe('the name of the model in a JSON answer', () => {
  test.each(ANSWERS)(
    '%j: is replaced where it stands for the model, wherever the answer is cut',
    (answer) => {
      for (const name of NAMES) {
        const given = answer.replaceAll('§', name);
        const expected = answer.replaceAll('§', WRITTEN);
        expect(rewrite(given, false)).toBe(expected);
        if (given.length < 1000)
          for (const cut of everyCut(given)) expect(rewrite(given, false, [cut])).toBe(expected);
        expect(rewrite(given, false, everyCut(given))).toBe(expected);
      }
    },
  );

  test('what is not JSON passes', () => {
    for (const text of ['}}]]{"model"', 'model: "m"', '{"model" "m"]', '<html>"model"</html>'])
      expect(rewrite(text, false, everyCut(text))).toBe(text);
  });
});

describe('the name of the model in a stream', () => {
  const line = fc.constantFrom('\n', '\r\n', '\r');
  const event = fc.constantFrom(
    ...ANSWERS.filter((answer) => !/[\n\ufeff]/.test(answer) && answer.length < 1000).map(
      (answer) => `data: ${answer}`,
    ),
    'event: message_start',
    'data:{"model":§}',
    ': {"model":"m"}',
    'id: {"model":"m"}',
    'data {"model":"m"}',
    'data: [DONE]',
    'data',
    'datax: {"model":"m"}',
    ' data: {"model":"m"}',
  );

  test('is replaced in each event, whatever ends the lines, wherever the stream is cut', () => {
    const events = fc.array(fc.tuple(event, line, line), { maxLength: 8 });
    const name = fc.constantFrom(...NAMES);
    fc.assert(
      fc.property(events, name, fc.array(fc.nat(400), { maxLength: 6 }), (parts, model, places) => {
        const stream = parts.map(([text, first, second]) => {
          // A CR and the LF after it would be one end of a line.
          return text + first + (first === '\r' && second === '\n' ? '\r' : second);
        });
        const given = stream.join('').replaceAll('§', model);
        const expected = stream.join('').replaceAll('§', WRITTEN);
        const cuts = places.filter((place) => place < Buffer.byteLength(given)).sort((a, b) => a - b);
        expect(rewrite(given, true, cuts)).toBe(expected);
        expect(rewrite(given, true, everyCut(given))).toBe(expected);
      }),
    );
  });

  test('is found in data of several lines, and after an event that breaks off in the name', () => {
    expect(rewrite('data: {"a":1,\r\ndata: "model":\r\ndata: "m"}\r\n\r\n', true)).toBe(
      `data: {"a":1,\r\ndata: "model":\r\ndata: ${WRITTEN}}\r\n\r\n`,
    );
    expect(rewrite('data: {"model":"m\n\ndata: {"model":"m"}\n\n', true)).toBe(
      `data: {"model":${WRITTEN}\n\ndata: {"model":${WRITTEN}}\n\n`,
    );
  });

  test('is found after an event that is no JSON, and not in a line after one that cuts it off', () => {
    const given = 'data: {"a":{"b\n\ndata: {"model":"m\ndata: "x"}\n\ndata: {"model":"m"}\n\n';
    const expected = `data: {"a":{"b\n\ndata: {"model":${WRITTEN}\ndata: "x"}\n\ndata: {"model":${WRITTEN}}\n\n`;
    expect(rewrite(given, true)).toBe(expected);
    expect(rewrite(given, true, everyCut(given))).toBe(expected);
  });

  test.each([
    'llama/chat-stream-usage',
    'vllm/chat-stream-usage',
    'llama/responses-stream',
    'vllm/responses-stream',
    'llama/messages-stream',
    'vllm/messages-stream',
  ])('of %s is replaced, and no other byte changes', (capture) => {
    const text = readCapture(capture).body.toString();
    const expected = text.replaceAll(/"model":\s*"[^"]*"/g, (member) => member.replace(/"[^"]*"$/, WRITTEN));
    expect(expected).not.toBe(text);
    expect(rewrite(text, true, everyCut(text))).toBe(expected);
  });
});

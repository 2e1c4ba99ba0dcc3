import { describe, expect, it } from 'vitest';
import { endpointAt } from '#testkit/reading/response-reading.ts';
import type { RecordedEndpoint } from '../../../../src/proxy/endpoints/recorded-endpoint.ts';
import { createPrefixHasher, type PrefixHasher } from '../../../../src/proxy/record/prefix-hashes.ts';
import { readRequestFacts } from '../../../../src/proxy/request/inspection/request-facts.ts';
import { describeRequestText } from '../../../../src/proxy/request/inspection/request-text.ts';

const CHAT = endpointAt('/v1/chat/completions');
const COMPLETIONS = endpointAt('/v1/completions');
const EMBEDDINGS = endpointAt('/v1/embeddings');
const hasher = createPrefixHasher({ salt: Buffer.from('salt'), blockChars: 4, maxBlocks: 128 });

/** A hasher that writes down what would be hashed, with `<payload>` for the mark of a medium. */
function createTranscript(): { hasher: PrefixHasher; tools?: string | undefined; text: string } {
  const transcript: ReturnType<typeof createTranscript> = {
    text: '',
    hasher: {
      begin(_model, tools) {
        transcript.tools = tools?.toString();
        return {
          isFull: false,
          add(utf8) {
            transcript.text += utf8.toString();
          },
          finish: () => [],
        };
      },
      mediaMark: (payload) => Buffer.from(`<${payload.toString()}>`),
    },
  };
  return transcript;
}

function describeText(text: string, endpoint: RecordedEndpoint = CHAT, by: PrefixHasher = hasher) {
  const body = Buffer.from(text);
  return describeRequestText(body, readRequestFacts(body, endpoint), endpoint, by);
}

function hashedText(text: string, endpoint: RecordedEndpoint = CHAT): string {
  const transcript = createTranscript();
  describeText(text, endpoint, transcript.hasher);
  return transcript.text;
}

const chat = (messages: string) => `{"model":"m","messages":${messages}}`;

describe('the hashed text of a chat', () => {
  it.each([
    ['[]', ''],
    ['[{"role":"user","content":"Hi"}]', '\u001euser\nHi\n'],
    ['[{"content":"Hi","role":"user"},{"role":"assistant"}]', '\u001euser\nHi\n\u001eassistant\n\n'],
    ['[{"role":"assistant","content":null,"tool_calls":[ {"a":1.0} ]}]', '\u001eassistant\n[ {"a":1.0} ]\n'],
    ['[{"role":"assistant","tool_calls":null}]', '\u001eassistant\nnull\n'],
    ['[{"role":7,"content":{"text":"no"}}]', '\u001e\n\n'],
    ['[1,"x",null]', '\u001e\n\n\u001e\n\n\u001e\n\n'],
    ['[{"role":"a","role":"b","content":"c","content":"d"}]', '\u001eb\nd\n'],
    ['[{"r\\u006fle":"\\u00e9","content":"\\ud83d\\ude00\\n\\ud83d"}]', '\u001eé\n😀\n\ufffd\n'],
    ['[{"content":[{"type":"text","text":"a"},"b",{"type":"input_text","text":"c"}]}]', '\u001e\nabc\n'],
    ['[{"content":[{"type":"text","text":null},{},7]}]', '\u001e\n<><><>\n'],
  ])('of %s', (messages, expected) => {
    expect(hashedText(chat(messages))).toBe(expected);
  });

  it.each([
    ['{"type":"image_url","image_url":{"detail":"low","url":"data:A"}}', 'data:A'],
    ['{"type":"image_url","image_url":"http:\\/\\/x"}', 'http://x'],
    ['{"image_url":{"url":null},"video_url":{"url":"v"}}', 'v'],
    ['{"audio_url":{"url":"a"},"video_url":{"url":"v"}}', 'v'],
    ['{"type":"input_audio","input_audio":{"data":"d","format":"wav"}}', 'd'],
    ['{"type":"file","file":{"file_id":"i","file_data":"f"}}', 'f'],
    ['{"type":"file","file":{"file_id":"i"}}', 'i'],
    ['{"type":"refusal","refusal":"r"}', ''],
  ])('marks the medium %s by its payload', (part, payload) => {
    expect(hashedText(chat(`[{"content":[{"text":"a"},${part},"b"]}]`))).toBe(`\u001e\na<${payload}>b\n`);
  });

  it('begins with the raw bytes of the last tools', () => {
    const transcript = createTranscript();
    describeText('{"model":"m","tools":1,"messages":[],"tools":[ 1.50 ]}', CHAT, transcript.hasher);
    expect(transcript.tools).toBe('[ 1.50 ]');
  });
});

describe('the hashed text of completions and embeddings', () => {
  it.each([
    ['"a\\nb"', 'a\nb'],
    ['["a","","b"]', 'a\u001e\u001eb'],
    ['[]', ''],
  ])('of %s', (value, expected) => {
    expect(hashedText(`{"model":"m","prompt":${value}}`, COMPLETIONS)).toBe(expected);
    expect(hashedText(`{"model":"m","input":${value}}`, EMBEDDINGS)).toBe(expected);
  });

  it.each(['[1,2]', '[[1],[2]]', '["a",7]', '["a",["b"]]', 'null', '{"text":"a"}', '[null]'])(
    'is none for %s',
    (value) => {
      expect(describeText(`{"model":"m","prompt":${value}}`, COMPLETIONS)).toEqual({});
    },
  );
});

describe('prompt_chars', () => {
  it.each([
    [chat('[]'), 0],
    [chat('[{"role":"user","content":"four"}]'), 4],
    [chat('[{"role":"user","content":"é😀\\ud83d\\ude00\\ud83d"}]'), 4],
    [chat('[{"content":["ab",{"text":"c"},{"image_url":"data"}],"tool_calls":[1]},{"content":"d"}]'), 4],
    ['{"model":"m"}', undefined],
    [chat('"text"'), undefined],
  ])('of %s are %s', (text, expected) => {
    expect(describeText(text).promptChars).toBe(expected);
  });

  it('leave out the separators of an array', () => {
    expect(describeText('{"model":"m","input":["ab","é"]}', EMBEDDINGS).promptChars).toBe(3);
  });

  it('are counted to the end of a text, of which only the beginning is hashed', () => {
    const short = createPrefixHasher({ salt: Buffer.from('salt'), blockChars: 4, maxBlocks: 2 });
    const parts = JSON.stringify([
      { content: ['x'.repeat(50_000), { image_url: 'data' }, 'é'.repeat(50_000)] },
    ]);
    const { promptChars, prefixHashes } = describeText(chat(parts), CHAT, short);
    expect(promptChars).toBe(100_000);
    expect(prefixHashes).toHaveLength(2);
  });

  it('and hashes are absent for a body that is not UTF-8', () => {
    const body = Buffer.from(chat('[{"content":"\u00ff and enough for a block"}]'), 'latin1');
    expect(describeRequestText(body, readRequestFacts(body, CHAT), CHAT, hasher)).toEqual({});
  });
});

describe('prefix_hashes', () => {
  it('are absent when no block is complete', () => {
    expect(describeText('{"model":"m","prompt":"abc"}', COMPLETIONS)).toEqual({ promptChars: 3 });
    expect(describeText('{"model":"m","prompt":"abcd"}', COMPLETIONS).prefixHashes).toHaveLength(1);
  });

  it('do not depend on how the client writes its JSON', () => {
    const plain = describeText('{"model":"m","messages":[{"role":"user","content":"é/\\" and so on"}]}');
    const escaped = describeText(
      '{ "messages" : [ { "content":"\\u00e9\\/\\u0022 and \\u0073o on", "role":"us\\u0065r" } ], "model":"\\u006d" }',
    );
    expect(escaped).toEqual(plain);
  });
});

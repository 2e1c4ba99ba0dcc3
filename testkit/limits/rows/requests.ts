import { jsonOfSize, recordOf, sendBytes, sendChat } from '../exchange.ts';
import { inFile, inKey, type Limit, testedBy } from '../limit.ts';

const CHAT = 'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\n';
const BODY = '{"model":"m"}';

/** A sound request whose head has this size. */
function headOfSize(sizeBytes: number): string {
  const head = `${CHAT}Content-Length: ${BODY.length}\r\nX-Pad: \r\n\r\n`;
  return head.replace('X-Pad: ', `X-Pad: ${'x'.repeat(sizeBytes - head.length)}`) + BODY;
}

/** A sound request in one chunk, whose size line and trailer section are given. */
const chunked = (sizeLine: string, trailers = '') =>
  `${CHAT}Transfer-Encoding: chunked\r\n\r\n${sizeLine}\r\n${BODY}\r\n0\r\n${trailers}\r\n`;

const SIZE = BODY.length.toString(16);

/** Heads, bodies and connections of clients. */
export const REQUESTS: readonly Limit[] = [
  {
    what: 'the request line and header fields',
    source: inKey('limits.headers'),
    past: '431; the connection is closed',
    proof: {
      send: (size, world) => sendBytes(world, headOfSize(size)),
      at: '200',
      past: '431 headers_too_large',
    },
  },
  {
    what: 'a request body',
    source: inKey('limits.body'),
    past: '413 `request_too_large`',
    proof: {
      limit: 64 * 1024,
      send: async (size, world) => {
        const sections = { limits: { body: '64KiB' } };
        const body = jsonOfSize(size);
        const declared = await sendChat(world, body, sections);
        const undeclared = `${CHAT}Transfer-Encoding: chunked\r\n\r\n${size.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
        return `${declared}, in chunks ${await sendBytes(world, undeclared, sections)}`;
      },
      at: '200, in chunks 200',
      past: '413 request_too_large, in chunks 413 request_too_large',
    },
  },
  {
    what: 'all request bodies in memory; those above 256 KiB share seven eighths of it',
    source: inKey('limits.buffered'),
    past: '503 `overloaded`, with `Retry-After: 1`',
    proof: testedBy(
      'test/gateway/responses/errors.test.ts',
      'more bodies at once than limits.buffered are a 503 overloaded',
    ),
  },
  {
    what: 'the digits of `Content-Length`',
    source: inFile('src/wire/message/head.ts', 'MAX_LENGTH_DIGITS'),
    past: '400; the connection is closed',
    proof: {
      send: (size, world) =>
        sendBytes(world, `${CHAT}Content-Length: ${String(BODY.length).padStart(size, '0')}\r\n\r\n${BODY}`),
      at: '200',
      past: '400 bad_request',
    },
  },
  {
    what: 'the digits of a chunk size',
    source: inFile('src/wire/message/chunk-size-line.ts', 'MAX_SIZE_DIGITS'),
    past: '400; the connection is closed',
    proof: {
      send: (size, world) => sendBytes(world, chunked(SIZE.padStart(size, '0'))),
      at: '200',
      past: '400 bad_request',
    },
  },
  {
    what: 'the line with a chunk size and its extensions',
    source: inFile('src/wire/message/body-reader.ts', 'DEFAULT_MAX_LINE_BYTES'),
    past: '400; the connection is closed',
    proof: {
      // Its line end counts.
      send: (size, world) => sendBytes(world, chunked(`${SIZE};a=${'x'.repeat(size - SIZE.length - 5)}`)),
      at: '200',
      past: '400 bad_request',
    },
  },
  {
    what: 'the trailer fields of a chunked body',
    source: inFile('src/wire/message/body-reader.ts', 'DEFAULT_MAX_TRAILER_BYTES'),
    past: '400; the connection is closed',
    proof: {
      // The empty line behind them counts.
      send: (size, world) => sendBytes(world, chunked(SIZE, `X-A: ${'x'.repeat(size - 9)}\r\n`)),
      at: '200',
      past: '400 bad_request',
    },
  },
  {
    what: 'further requests on a connection, read ahead',
    source: inFile('src/wire/client/client-connection.ts', 'MAX_PIPELINED_BYTES'),
    past: 'the rest is read after the answers',
    proof: testedBy(
      'test/gateway/wire/pipelining.test.ts',
      'a client that pipelines and never reads is not read any more, and closed',
    ),
  },
  {
    what: 'gateways in series, by `Via`',
    source: inFile('src/proxy/entry/entry.ts', 'MAX_IN_SERIES'),
    past: '508 `loop_detected`',
    proof: testedBy(
      'test/gateway/requests/loops.test.ts',
      'of eight other gateways is that of a loop, of seven it is not',
    ),
  },
  {
    what: 'the time a head takes, from its first byte',
    source: inKey('timeouts.client_headers'),
    past: '408 `request_timeout`; the connection is closed',
    proof: testedBy(
      'test/gateway/responses/errors.test.ts',
      'headers that come too slowly are a 408, closed, without a record',
    ),
  },
  {
    what: 'the time a body takes',
    source: inKey('timeouts.client_body'),
    past: '408 `request_timeout`',
    proof: testedBy('test/gateway/responses/errors.test.ts', 'a body that comes too slowly'),
  },
  {
    what: 'the time a connection is idle',
    source: inKey('timeouts.keep_alive'),
    past: 'it is closed',
    proof: testedBy('test/gateway/wire/early-connections.test.ts', 'and never used is closed without a word'),
  },
  {
    what: 'connections of clients',
    source: inKey('limits.connections'),
    past: 'new ones are closed; one log line',
    proof: testedBy(
      'test/gateway/wire/connection-limit.test.ts',
      'reaching limits.connections is told once, however many are turned away',
    ),
  },
  {
    what: 'requests that wait for a replica below its `max_inflight`',
    source: inKey('limits.queue'),
    past: '503 `overloaded`',
    proof: testedBy(
      'test/gateway/replicas/max-inflight.test.ts',
      'by limits.queue: beyond it a request is refused at once, and did not wait',
    ),
  },
  {
    what: "a model's name in a body, as written",
    source: inFile('src/proxy/request/inspection/request-facts.ts', 'MAX_MODEL_BYTES'),
    past: '404 `model_not_found`',
    proof: {
      send: (size, world) => sendChat(world, `{"model":"${'m'.repeat(size)}"}`),
      at: '404 model_not_found',
      past: '404 model_not_found',
    },
  },
  {
    what: 'occurrences of `stream_options` and `include_usage` in a body, together',
    source: inFile('src/proxy/request/inspection/stream-options.ts', 'MAX_USAGE_MEMBERS'),
    past: '400 `large_stream_options`',
    proof: {
      send: (size, world) => {
        const options = '"stream_options":{"include_usage":true}';
        // Each of them counts twice; the odd one is empty.
        const members = [
          ...Array(Math.floor(size / 2)).fill(options),
          ...Array(size % 2).fill('"stream_options":{}'),
        ];
        return sendChat(world, `{"model":"m",${members.join()}}`);
      },
      at: '200',
      past: '400 large_stream_options',
    },
  },
  {
    what: 'all `stream_options` of a body',
    source: inFile('src/proxy/request/inspection/stream-options.ts', 'MAX_STREAM_OPTIONS_BYTES'),
    past: '400 `large_stream_options`',
    proof: {
      send: (size, world) =>
        sendChat(world, `{"model":"m","stream_options":{"a":"${'x'.repeat(size - '{"a":""}'.length)}"}}`),
      at: '200',
      past: '400 large_stream_options',
    },
  },
  {
    what: "a conversation's name in a body, as written",
    source: inFile('src/proxy/request/inspection/conversation.ts', 'MAX_NAME_BYTES'),
    past: 'it is not recorded',
    proof: {
      send: async (size, world) => {
        const { conversation_id } = await recordOf(world, {
          members: { prompt_cache_key: 'c'.repeat(size) },
        });
        return String(conversation_id?.length);
      },
      at: '256',
      past: 'undefined',
    },
  },
  {
    what: '`reasoning_effort` in a body, as written',
    source: inFile('src/proxy/request/inspection/request-facts.ts', 'MAX_LEVEL_BYTES'),
    past: 'it is not recorded',
    proof: {
      send: async (size, world) => {
        const record = await recordOf(world, { members: { reasoning_effort: 'h'.repeat(size) } });
        return String(record.reasoning_level?.length);
      },
      at: '64',
      past: 'undefined',
    },
  },
];

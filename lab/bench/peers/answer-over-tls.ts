import { readFileSync } from 'node:fs';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import { allocateLimit, SharedLimit } from '#shared-memory';
import { DeadlineClock } from '#wire';
import { type HttpExchange, HttpServer, type RequestBodySink } from '#wire/client';

/*
 * Reads each request and answers it from memory, over TLS 1.3: with the gateway's own HTTP/1.1, or with the streams of
 * node:http2. answer-over-tls.ts http1|http2 PORT CERT KEY
 */

const [protocol, portText, certPath = '', keyPath = ''] = process.argv.slice(2);
const [cert, key] = [certPath, keyPath].map((path) => readFileSync(path, 'utf8'));
const port = Number(portText);
const ANSWER = Buffer.from(
  JSON.stringify({
    object: 'chat.completion',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'hello '.repeat(40) }, finish_reason: 'stop' },
    ],
    usage: { prompt_tokens: 500, completion_tokens: 40, total_tokens: 540 },
  }),
);

if (protocol === 'http2') serveHttp2();
else await serveHttp1();

class Answer implements RequestBodySink {
  readonly #exchange: HttpExchange;

  constructor(exchange: HttpExchange) {
    this.#exchange = exchange;
  }

  onData(): void {
    // As the other server, which discards what it reads.
  }

  onTimeout(): void {
    this.#exchange.destroy();
  }

  onEnd(): void {
    const fieldLines = 'Content-Type: application/json\r\n';
    this.#exchange.begin({ status: 200, reason: 'OK', fieldLines, contentLength: ANSWER.length });
    this.#exchange.end([ANSWER]);
  }
}

async function serveHttp1(): Promise<void> {
  const server = new HttpServer(
    {
      maxHeadBytes: 32_768,
      headTimeoutMs: 15_000,
      keepAliveMs: 75_000,
      sendTimeoutMs: 300_000,
      maxDiscardedBytes: 65_536,
    },
    {
      pairs: [{ cert: cert ?? '', key: key ?? '' }],
      clientCa: null,
      minVersion: 'TLSv1.3',
      ticketKeys: new Uint8Array(48),
    },
    {
      clock: new DeadlineClock(500),
      connections: new SharedLimit(allocateLimit(1, 20_000), 0),
      handle: (exchange) => exchange.readBody(new Answer(exchange), 60_000),
      onTooMany: () => undefined,
      onHandshakeFailed: () => undefined,
      onDefect: console.error,
    },
  );
  await server.listen({ host: '127.0.0.1', port });
}

function serveHttp2(): void {
  const server = createSecureServer({ cert, key, minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' });
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.resume().once('end', () => {
      stream.respond({
        ':status': 200,
        'content-type': 'application/json',
        'content-length': ANSWER.length,
      });
      stream.end(ANSWER);
    });
  });
  server.listen(port, '127.0.0.1', 4096);
}

import { connect, type Socket } from 'node:net';
import { allocateLimit, SharedLimit } from '#shared-memory';
import { DeadlineClock } from '#wire';
import { type HttpExchange, HttpServer, type RequestBodySink } from '#wire/client';
import type { Fields, ResponseHead } from '#wire/message';
import { type ResponseHandler, type UpstreamConnection, UpstreamConnections } from '#wire/upstream';

/*
 * The gateway's own HTTP/1.1 and nothing else: no record, no usage, no choice of a replica.
 * bare-wire.ts PORT REPLICA_PORT…
 */

const [port, ...replicaPorts] = process.argv.slice(2).map(Number);
const clock = new DeadlineClock(500);
const pools = replicaPorts.map(
  (replicaPort) =>
    new UpstreamConnections(
      {
        connect(callback) {
          const socket: Socket = connect({ host: '127.0.0.1', port: replicaPort });
          socket
            .once('connect', () => callback(null, socket))
            .once('error', (error) => callback(error, null));
        },
        keepAliveMs: 4_000,
        maxAgeMs: Number.POSITIVE_INFINITY,
        onDefect: console.error,
      },
      clock,
    ),
);
let turn = 0;

class Passage implements RequestBodySink, ResponseHandler {
  readonly stream = null;
  readonly #exchange: HttpExchange;
  #isSent = false;
  readonly #body: Buffer[] = [];
  #out: Buffer[] = [];

  constructor(exchange: HttpExchange) {
    this.#exchange = exchange;
  }

  onData(view: Buffer): void {
    if (this.#isSent) this.#out.push(view);
    else this.#body.push(view);
  }

  onTimeout(): void {
    this.#exchange.destroy();
  }

  onWritten(): void {
    // The body is kept until the end.
  }

  onHead(head: ResponseHead): void {
    const { status, reason, fields, framing } = head;
    const fieldLines = toLines(fields, ['connection', 'content-length', 'transfer-encoding']);
    const contentLength = framing.kind === 'length' ? framing.bytes : null;
    this.#exchange.begin({ status, reason, fieldLines, contentLength });
  }

  onReadEnd(): void {
    this.#exchange.write(this.#out);
    this.#out = [];
  }

  /** The end of the request's body, or of the response. */
  onEnd(): void {
    if (this.#isSent) {
      this.#exchange.end(this.#out);
      return;
    }
    this.#isSent = true;
    this.#send();
  }

  onFault(): void {
    this.#exchange.destroy();
  }

  #send(): void {
    const pool = pools[turn++ % pools.length];
    const idle = pool?.takeIdle();
    if (idle) this.#sendOn(idle);
    else pool?.open((_error, connection) => connection && this.#sendOn(connection));
  }

  #sendOn(connection: UpstreamConnection): void {
    const { method, target, fields } = this.#exchange.head;
    const headText = `${method} ${target} HTTP/1.1\r\n${toLines(fields, ['connection'])}\r\n`;
    const request = { method, headText, body: this.#body, firstByteMs: 900_000, idleMs: 300_000 };
    connection.send(request, this);
  }
}

function toLines({ names, lowerNames, values }: Fields, without: readonly string[]): string {
  let lines = '';
  for (let i = 0; i < names.length; i++) {
    if (!without.includes(lowerNames[i] ?? '')) lines += `${names[i]}: ${values[i]}\r\n`;
  }
  return lines;
}

const server = new HttpServer(
  {
    maxHeadBytes: 32_768,
    headTimeoutMs: 15_000,
    keepAliveMs: 75_000,
    sendTimeoutMs: 300_000,
    maxDiscardedBytes: 65_536,
  },
  null,
  {
    clock,
    connections: new SharedLimit(allocateLimit(1, 20_000), 0),
    handle: (exchange) => exchange.readBody(new Passage(exchange), 60_000),
    onTooMany: () => undefined,
    onHandshakeFailed: () => undefined,
    onDefect: console.error,
  },
);
await server.listen({ host: '127.0.0.1', port: port ?? 0 });

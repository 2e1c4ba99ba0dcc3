import { onTestFinished } from 'vitest';
import { EventLog } from '#testkit/event-log.ts';
import type { Fields, ResponseHead } from '#wire/message';
import { createUpstreamConnections } from '../../../src/replicas/data/upstream.ts';
import { DeadlineClock } from '../../../src/wire/deadline-clock.ts';
import { SharedReads } from '../../../src/wire/upstream/shared-reads.ts';
import type { UpstreamConnection } from '../../../src/wire/upstream/upstream-connection.ts';
import type { UpstreamConnections } from '../../../src/wire/upstream/upstream-connections.ts';
import type { ResponseHandler, UpstreamFault } from '../../../src/wire/upstream/upstream-request.ts';
import { ScriptedTime } from '../scripted-time.ts';

/** A response as its handler received it. */
export interface Received {
  readonly head: ResponseHead;
  readonly body: Buffer;
  readonly trailers: Fields;
}

/** Collects one response. The test may do more at each step, from within the step. */
export class Collector implements ResponseHandler {
  readonly stream = null;
  /** The steps so far: written, head, data, read end, end, fault. */
  readonly steps = new EventLog<'written' | 'head' | 'data' | 'read end' | 'end' | 'fault'>();
  /** Called with each step, within it. */
  onStep: (step: string) => void = () => undefined;
  readonly #chunks: Buffer[] = [];
  readonly #settled = Promise.withResolvers<Received | UpstreamFault>();
  #head: ResponseHead | null = null;

  get result(): Promise<Received | UpstreamFault> {
    return this.#settled.promise;
  }

  onWritten(): void {
    this.#note('written');
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    this.#note('head');
  }

  onData(view: Buffer): void {
    this.#chunks.push(Buffer.from(view));
    this.#note('data');
  }

  onReadEnd(): void {
    this.#note('read end');
  }

  onEnd(trailers: Fields): void {
    if (this.#head !== null) {
      this.#settled.resolve({ head: this.#head, body: Buffer.concat(this.#chunks), trailers });
    }
    this.#note('end');
  }

  onFault(fault: UpstreamFault): void {
    this.#settled.resolve(fault);
    this.#note('fault');
  }

  #note(step: (typeof this.steps.items)[number]): void {
    this.onStep(step);
    this.steps.push(step);
  }
}

/** Opens a connection. */
export function open(connections: UpstreamConnections): Promise<UpstreamConnection> {
  return new Promise((resolve, reject) => {
    connections.open((error, connection) => {
      if (connection === null) reject(error);
      else resolve(connection);
    });
  });
}

/**
 * Connections to the server at a URL as the gateway makes them, until the test is over. Their time is the test's. A
 * defect fails the test.
 */
export function connectAsGateway(url: string, time = new ScriptedTime()): UpstreamConnections {
  const connections = createUpstreamConnections(
    { url },
    {
      timeouts: { connectMs: 60_000, upstreamKeepAliveMs: 3_600_000, nameTtlMs: 3_600_000 },
      clock: new DeadlineClock(1, time),
      sharedReads: new SharedReads(),
      onDefect: (error) => {
        throw error;
      },
    },
  );
  onTestFinished(() => connections.destroy());
  return connections;
}

/** What a request is sent with, unless a test says otherwise: time-outs that no test reaches. */
const REQUEST = {
  method: 'POST',
  headText: 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n',
  body: [Buffer.from('ping')] as readonly Buffer[] | null,
  firstByteMs: 3_600_000,
  idleMs: 3_600_000,
};

/** Sends a request on a connection. Without a body it follows, by `writeBody` and `endBody`. */
export function sendOn(connection: UpstreamConnection, changes: Partial<typeof REQUEST> = {}): Collector {
  const collector = new Collector();
  connection.send({ ...REQUEST, ...changes }, collector);
  return collector;
}

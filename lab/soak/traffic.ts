import { Agent, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { sendInOpenLoop } from '#testkit/load/loops.ts';
import type { FailedRequest } from './attribution.ts';
import { Exchange, readBody, toReason } from './exchange.ts';
import type { Journal } from './journal.ts';
import { REQUEST_KINDS, type RequestKind, SLOW_READER, toContinuation } from './requests.ts';
import { type Stored, StoredResponses } from './stored-responses.ts';

/** With more open requests the load waits: on a machine too slow for the rate they would only pile up. */
export const MAX_OPEN = 200;
/** Requests that may be sent at once after this process paused. */
const MAX_BURST = 30;
/** Every so many requests a client reads slowly, and a kept response is asked for. */
const SLOW_EVERY = 211;
const STORED_EVERY = 19;
/** Every third round of requests goes to the second gateway. */
const ROUNDS = 3;
/** Less than the gateway's `timeouts.keep_alive`: this side closes idle connections. */
const IDLE_MS = 20_000;

/** Where requests go. */
export interface Targets {
  /** The first asks for keys. */
  readonly gatewayUrls: readonly [string, string];
  readonly journal: Journal;
  /** The API key of a kind, at this moment. */
  keyFor(kind: RequestKind['key']): string;
  /** The replicas that run. */
  replicaUrls(): readonly string[];
}

/** What clients saw, in total. */
export interface TrafficCounts {
  sent: number;
  /** As it should be. */
  succeeded: number;
  /** The client left on purpose. */
  aborted: number;
  /** Another status than expected, an error inside of a stream, or a broken connection. */
  failed: number;
  /** A client over its limit. */
  limited: number;
  slowlyRead: number;
  /** A response that its replica kept was asked for, and came; or its replica had ended or been away since. */
  found: number;
  gone: number;
}

/** How long the same requests took, in milliseconds. */
export interface Durations {
  readonly throughGateway: readonly number[];
  readonly direct: readonly number[];
}

/** An open loop of mixed requests at a fixed rate. */
export class Traffic {
  readonly counts: TrafficCounts = {
    sent: 0,
    succeeded: 0,
    aborted: 0,
    failed: 0,
    limited: 0,
    slowlyRead: 0,
    found: 0,
    gone: 0,
  };
  /** The ids of answered requests that must leave a record. */
  readonly requestIds: string[] = [];
  readonly failures: FailedRequest[] = [];
  readonly #targets: Targets;
  readonly #agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  readonly #connectedMs = new WeakMap<Socket, number>();
  readonly #stored: StoredResponses;
  readonly #running: Promise<void>;
  readonly #open = new Set<Promise<void>>();
  #throughGateway: number[] = [];
  #direct: number[] = [];
  #isStopped = false;

  constructor(targets: Targets, perSecond: number) {
    this.#targets = targets;
    this.#stored = new StoredResponses(targets.journal);
    this.#running = sendInOpenLoop({
      perSecond,
      maxBurst: MAX_BURST,
      hasRoom: () => this.#open.size < MAX_OPEN,
      begin: () => this.#begin(this.counts.sent++),
      isStopped: () => this.#isStopped,
    });
  }

  /** The durations since the last call. */
  takeDurations(): Durations {
    const taken = { throughGateway: this.#throughGateway, direct: this.#direct };
    this.#throughGateway = [];
    this.#direct = [];
    return taken;
  }

  /** Sends no more requests, waits for the open ones, and closes the connections. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
    await Promise.all(this.#open);
    this.#agent.destroy();
  }

  #begin(index: number): void {
    const gateway = Math.floor(index / REQUEST_KINDS.length) % ROUNDS === ROUNDS - 1 ? 1 : 0;
    const stored = index % STORED_EVERY === 0 ? this.#stored.take() : null;
    const kind = REQUEST_KINDS[index % REQUEST_KINDS.length] as RequestKind;
    if (stored !== null) this.#track(this.#askForStored(stored, index));
    else if (index % SLOW_EVERY === 0) this.#track(this.#send(SLOW_READER, gateway));
    else {
      this.#track(this.#send(kind, gateway));
      if (kind.isTimed) this.#track(this.#sendDirectly(kind, index));
    }
  }

  #track(sending: Promise<void>): void {
    const tracked = sending.finally(() => this.#open.delete(tracked));
    this.#open.add(tracked);
  }

  async #send(kind: RequestKind, gateway: number): Promise<void> {
    const { statuses, key, client } = kind;
    const expected = key === 'wrong' && gateway === 1 ? [200] : statuses;
    const exchange = new Exchange(kind.name, true);
    try {
      const response = await this.#answerTo(exchange, 'POST', gateway, kind);
      const { statusCode = 0 } = response;
      if (exchange.requestId !== null) this.requestIds.push(exchange.requestId);
      if (client === 'leaves') {
        response.destroy();
        this.counts.aborted++;
        return;
      }
      const body = await readBody(response, client === 'reads_slowly');
      if (client === 'reads_slowly') this.counts.slowlyRead++;
      const isWhole = response.complete && !body.hasError;
      if (!expected.includes(statusCode) || (statusCode === 200 && !isWhole)) {
        this.#fail(exchange, statusCode === 200 ? 'the answer broke off' : `status ${statusCode}`);
        return;
      }
      this.counts.succeeded++;
      if (statusCode === 429) this.counts.limited++;
      if (kind.isStored) this.#stored.add(body.start, gateway);
      if (kind.isTimed) this.#throughGateway.push(performance.now() - exchange.startedMs);
    } catch (error) {
      exchange.isCut = true;
      this.#fail(exchange, toReason(error));
    }
  }

  /** The reference: what the replica and the harness take on this machine at this moment. */
  async #sendDirectly(kind: RequestKind, index: number): Promise<void> {
    const urls = this.#targets.replicaUrls();
    const url = urls[index % urls.length];
    if (url === undefined) return;
    const startedMs = performance.now();
    try {
      const response = await this.#post(new Exchange(kind.name, false), url, 'POST', kind);
      await readBody(response, false);
      if (response.complete) this.#direct.push(performance.now() - startedMs);
    } catch {
      // The replica has ended.
    }
  }

  async #askForStored(stored: Stored, index: number): Promise<void> {
    const [method, kind] = FOLLOW_UPS[index % FOLLOW_UPS.length] ?? (['GET', null] as const);
    const request = kind?.(stored.id) ?? { path: `/v1/responses/${stored.id}`, json: EMPTY, key: 'valid' };
    // Now and then of the gateway that was not there when it was made.
    const gateway = index % 5 === 0 ? 1 - stored.gateway : stored.gateway;
    const exchange = new Exchange(`${method} of a kept response`, kind !== null);
    try {
      const response = await this.#answerTo(exchange, method, gateway, request);
      const { statusCode = 0 } = response;
      if (exchange.requestId !== null && kind !== null) this.requestIds.push(exchange.requestId);
      await readBody(response, false);
      // What is made without a key is nobody's where keys are asked for.
      const isForeign = stored.gateway !== 0 && gateway === 0;
      const mayBeGone = isForeign || this.#stored.mayBeGone(stored, gateway);
      const isLeaked = isForeign && statusCode === 200;
      if (isLeaked || !response.complete || (statusCode !== 200 && !(statusCode === 404 && mayBeGone))) {
        this.#fail(exchange, `status ${statusCode}`);
        return;
      }
      this.counts.succeeded++;
      if (statusCode === 200) this.counts.found++;
      else this.counts.gone++;
    } catch (error) {
      exchange.isCut = true;
      this.#fail(exchange, toReason(error));
    }
  }

  #answerTo(exchange: Exchange, method: string, gateway: number, kind: Sent): Promise<IncomingMessage> {
    const url = this.#targets.gatewayUrls[gateway] ?? this.#targets.gatewayUrls[0];
    const authorization = gateway === 0 ? `Bearer ${this.#targets.keyFor(kind.key)}` : undefined;
    return this.#post(exchange, url, method, kind, authorization);
  }

  async #post(exchange: Exchange, url: string, method: string, sent: Sent, authorization?: string) {
    const { path, json } = sent;
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': json.length,
      ...(authorization === undefined ? {} : { Authorization: authorization }),
    };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = request(url + path, { method, agent: this.#agent, headers });
      outgoing.once('socket', (socket) => {
        const connectedMs = this.#connectedMs.get(socket) ?? performance.now();
        this.#connectedMs.set(socket, connectedMs);
        exchange.connectedMs = connectedMs;
      });
      outgoing.once('response', resolve).once('error', reject).end(json);
    });
    const id = response.headers['x-request-id'];
    if (typeof id === 'string') exchange.requestId = id;
    return response;
  }

  #fail(exchange: Exchange, reason: string): void {
    this.counts.failed++;
    this.failures.push(exchange.toFailed(reason));
  }
}

type Sent = Pick<RequestKind, 'path' | 'json' | 'key'>;

const EMPTY = Buffer.alloc(0);
const FOLLOW_UPS = [
  ['GET', null],
  ['POST', toContinuation],
  ['DELETE', null],
] as const;

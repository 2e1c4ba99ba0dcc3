import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const TEXT = 'Tell me how a soak test goes. ';
const MESSAGES = [{ role: 'user', content: TEXT.repeat(20) }];
const CHAT = '/v1/chat/completions';

/** What clients send, in turn. Each `abort`: the client leaves with the first byte of the answer. */
const REQUESTS = [
  { path: CHAT, body: { messages: MESSAGES, stream: true } },
  { path: CHAT, body: { messages: MESSAGES } },
  { path: CHAT, body: { messages: MESSAGES, stream: true, stream_options: { include_usage: true } } },
  { path: '/v1/completions', body: { prompt: TEXT, stream: true } },
  { path: '/v1/embeddings', body: { input: [TEXT, TEXT] } },
  { path: CHAT, body: { messages: MESSAGES, stream: true }, abort: true },
  { path: CHAT, body: { messages: [{ role: 'user', content: TEXT.repeat(4_000) }] } },
  { path: CHAT, body: { messages: MESSAGES, model: 'unknown' }, status: 404 },
  { path: '/v1/completions', body: { prompt: TEXT } },
  { path: CHAT, body: { messages: MESSAGES, stream: true, n: 2 } },
].map(({ path, body, abort = false, status = 200 }) => ({
  ...{ path, abort, status },
  json: Buffer.from(JSON.stringify({ model: 'm', ...body })),
}));

/** With more open requests the load waits: on a machine too slow for the rate they would only pile up. */
const MAX_OPEN = 200;
/** Requests that may be sent at once after this process paused. */
const MAX_BURST = 30;
const TICK_MS = 5;
/** Latencies that are kept: of the last ones, for the p99 of a window. */
const MAX_LATENCIES = 100_000;

/** What clients saw, in total. */
export interface TrafficCounts {
  sent: number;
  /** As it should be. */
  succeeded: number;
  /** The client left on purpose. */
  aborted: number;
  /** Another status than expected, an error inside of a stream, or a broken connection. */
  failed: number;
}

/** An open loop of mixed requests at a fixed rate. */
export class Traffic {
  readonly counts: TrafficCounts = { sent: 0, succeeded: 0, aborted: 0, failed: 0 };
  /** The ids of answered requests that must leave a record. */
  readonly requestIds: string[] = [];
  /** Why requests failed, and how many. */
  readonly failures = new Map<string, number>();
  /** When they began and ended, on the clock of `performance.now()`. */
  readonly failedBetweenMs: (readonly [number, number])[] = [];
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #running: Promise<void>;
  readonly #open = new Set<Promise<void>>();
  #latenciesMs: number[] = [];
  #isStopped = false;

  constructor(url: string, perSecond: number) {
    this.#url = url;
    this.#running = this.#run(perSecond);
  }

  /** The durations of the successful requests since the last call. */
  takeLatencies(): readonly number[] {
    const taken = this.#latenciesMs;
    this.#latenciesMs = [];
    return taken;
  }

  /** Sends no more requests, waits for the open ones, and closes the connections. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
    await Promise.all(this.#open);
    this.#agent.destroy();
  }

  async #run(perSecond: number): Promise<void> {
    let due = 0;
    let lastMs = performance.now();
    while (!this.#isStopped) {
      const nowMs = performance.now();
      due = Math.min(due + ((nowMs - lastMs) / 1000) * perSecond, MAX_BURST);
      lastMs = nowMs;
      for (; due >= 1 && this.#open.size < MAX_OPEN; due -= 1) {
        const sending = this.#send(this.counts.sent++).finally(() => this.#open.delete(sending));
        this.#open.add(sending);
      }
      await sleep(TICK_MS);
    }
  }

  async #send(index: number): Promise<void> {
    const { path, json, abort, status } = REQUESTS[index % REQUESTS.length] as (typeof REQUESTS)[number];
    const startedMs = performance.now();
    try {
      const response = await this.#answerTo(path, json);
      const { statusCode = 0 } = response.headers['x-request-id'] === undefined ? {} : response;
      this.requestIds.push(String(response.headers['x-request-id']));
      if (abort) {
        response.destroy();
        this.counts.aborted++;
        return;
      }
      const end = await lastBytesOf(response);
      const isWhole = response.complete && !end.includes('"error"');
      if (statusCode !== status || (status === 200 && !isWhole)) {
        this.#fail(statusCode === 200 ? 'the answer broke off' : `status ${statusCode}`, startedMs);
        return;
      }
      this.counts.succeeded++;
      if (this.#latenciesMs.length < MAX_LATENCIES) this.#latenciesMs.push(performance.now() - startedMs);
    } catch (error) {
      this.#fail(error instanceof Error && 'code' in error ? String(error.code) : String(error), startedMs);
    }
  }

  #answerTo(path: string, json: Buffer): Promise<IncomingMessage> {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': json.length };
    return new Promise((resolve, reject) => {
      const outgoing = request(this.#url + path, { method: 'POST', agent: this.#agent, headers });
      outgoing.once('response', resolve).once('error', reject).end(json);
    });
  }

  #fail(reason: string, startedMs: number): void {
    this.counts.failed++;
    this.failedBetweenMs.push([startedMs, performance.now()]);
    this.failures.set(reason, (this.failures.get(reason) ?? 0) + 1);
  }
}

const KEPT_BYTES = 4_096;

async function lastBytesOf(response: IncomingMessage): Promise<string> {
  let end = Buffer.alloc(0);
  for await (const chunk of response) end = Buffer.concat([end, chunk as Buffer]).subarray(-KEPT_BYTES);
  return end.toString('latin1');
}

import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

/** What came of a load. */
export interface LoadResult {
  readonly requests: number;
  /** Sent in a second, on average. */
  readonly perSecond: number;
  /** Why requests failed, one line each: a status other than 200, a connection that broke, an answer without its end. */
  readonly failures: readonly string[];
  /** The gateway's id of each request that was answered. */
  readonly requestIds: readonly string[];
}

const MESSAGES = [{ role: 'user', content: 'Tell me how a rollout goes. '.repeat(30) }];

/** Chats and completions, streamed and not, usage asked for and not: by turns. */
const REQUESTS = [
  { path: '/v1/chat/completions', body: { messages: MESSAGES, stream: true } },
  { path: '/v1/chat/completions', body: { messages: MESSAGES } },
  {
    path: '/v1/chat/completions',
    body: { messages: MESSAGES, stream: true, stream_options: { include_usage: true } },
  },
  { path: '/v1/completions', body: { prompt: 'Once upon a time', stream: true, max_tokens: 12 } },
].map(({ path, body }) => ({ path, json: JSON.stringify({ model: 'm', ...body }) }));

/** Beyond it the load waits: a machine too busy for the rate would only pile up requests. */
const MAX_OPEN = 100;

/** How many requests may follow at once on a pause of this process. */
const MAX_BURST = 20;

/**
 * Sends so many requests a second to a gateway, whether or not earlier ones have ended, over connections that it
 * keeps: as clients of a library do.
 */
export class Load {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #failures: string[] = [];
  readonly #requestIds: string[] = [];
  readonly #open = new Set<Promise<void>>();
  readonly #waiting = new Set<() => void>();
  readonly #running: Promise<void>;
  readonly #startedAtMs = performance.now();
  #sent = 0;
  #ended = 0;
  #isStopped = false;

  constructor(url: string, perSecond: number) {
    this.#url = url;
    this.#running = this.#run(perSecond);
  }

  /** Resolves when so many more requests have ended, well or not. */
  async untilEnded(more: number): Promise<void> {
    const end = this.#ended + more;
    while (this.#ended < end) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  /** Sends no more, and waits for those under way. */
  async stop(): Promise<LoadResult> {
    this.#isStopped = true;
    await this.#running;
    const perSecond = Math.round((this.#sent * 1000) / (performance.now() - this.#startedAtMs));
    await Promise.all(this.#open);
    this.#agent.destroy();
    return { requests: this.#sent, perSecond, failures: this.#failures, requestIds: this.#requestIds };
  }

  async #run(perSecond: number): Promise<void> {
    let due = 0;
    let lastMs = performance.now();
    while (!this.#isStopped) {
      const nowMs = performance.now();
      due = Math.min(due + ((nowMs - lastMs) / 1000) * perSecond, MAX_BURST);
      lastMs = nowMs;
      for (; due >= 1 && this.#open.size < MAX_OPEN; due -= 1) {
        const sending = this.#send(this.#sent++).finally(() => this.#open.delete(sending));
        this.#open.add(sending);
      }
      await sleep(5);
    }
  }

  async #send(index: number): Promise<void> {
    const { path, json } = REQUESTS[index % REQUESTS.length] ?? { path: '/', json: '' };
    try {
      const problem = await this.#ask(path, json);
      if (problem !== null) this.#fail(index, problem);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : String(error);
      this.#fail(index, String(code));
    }
    this.#ended += 1;
    for (const look of this.#waiting) look();
    this.#waiting.clear();
  }

  #fail(index: number, problem: string): void {
    this.#failures.push(`request ${index}, ended at ${new Date().toISOString().slice(11, -1)}: ${problem}`);
  }

  /** Null if the answer is a 200 and came whole. */
  async #ask(path: string, json: string): Promise<string | null> {
    const outgoing = request(this.#url + path, {
      method: 'POST',
      agent: this.#agent,
      headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(json) },
    });
    outgoing.end(json);
    const [response]: IncomingMessage[] = await once(outgoing, 'response');
    if (response === undefined) return 'no response';
    const { 'x-request-id': requestId, 'content-type': type = '' } = response.headers;
    const body = await text(response);
    if (typeof requestId === 'string') this.#requestIds.push(requestId);
    if (response.statusCode !== 200) return `status ${response.statusCode}`;
    const isWhole = type.startsWith('text/event-stream')
      ? body.endsWith('data: [DONE]\n\n') && !body.includes('data: {"error"')
      : Array.isArray(JSON.parse(body).choices);
    return isWhole ? null : 'the answer has no end';
  }
}

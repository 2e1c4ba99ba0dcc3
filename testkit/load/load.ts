import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { text } from 'node:stream/consumers';
import { sendInOpenLoop } from './loops.ts';

/** An answer as a client sees it. */
export interface Answer {
  /** Null if the status is 200 and the answer is whole; otherwise what is wrong. */
  readonly problem: string | null;
  /** The X-Request-Id of the gateway. */
  readonly requestId: string | null;
}

/** POSTs JSON and reads the answer, a stream or not, to its end. Rejects when the connection breaks. */
export async function post(
  agent: Agent,
  url: string,
  json: string | Buffer,
  fields: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const length = Buffer.byteLength(json);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': length, ...fields };
  const send = url.startsWith('https:') ? requestTls : request;
  const outgoing = send(url, { method: 'POST', agent, headers });
  outgoing.end(json);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const { 'x-request-id': requestId = null, 'content-type': type = '' } = response.headers;
  const body = await text(response);
  const problem = findProblem(response.statusCode ?? 0, type, body);
  return { problem, requestId: typeof requestId === 'string' ? requestId : null };
}

function findProblem(status: number, type: string, body: string): string | null {
  if (status !== 200) return `status ${status}`;
  const isWhole = type.startsWith('text/event-stream')
    ? body.endsWith('data: [DONE]\n\n') && !body.includes('data: {"error"')
    : body.endsWith('}') && Array.isArray(JSON.parse(body).choices);
  return isWhole ? null : 'the answer has no end';
}

/** The result of a load. */
export interface LoadResult {
  readonly requests: number;
  /** Requests sent per second, on average. */
  readonly perSecond: number;
  /** Why requests failed, one line each: a status other than 200, a broken connection, an answer without its end. */
  readonly failures: readonly string[];
  /** The gateway's id of each answered request. */
  readonly requestIds: readonly string[];
}

const MESSAGES = [{ role: 'user', content: 'Tell me how a rollout goes. '.repeat(30) }];

/** Chats and completions, streamed or not, with and without usage, in turn. */
const REQUESTS = [
  { path: '/v1/chat/completions', body: { messages: MESSAGES, stream: true } },
  { path: '/v1/chat/completions', body: { messages: MESSAGES } },
  {
    path: '/v1/chat/completions',
    body: { messages: MESSAGES, stream: true, stream_options: { include_usage: true } },
  },
  { path: '/v1/completions', body: { prompt: 'Once upon a time', stream: true, max_tokens: 12 } },
].map(({ path, body }) => ({ path, json: JSON.stringify({ model: 'm', ...body }) }));

/**
 * Which request comes next. In turn, each of several replicas would get one kind only. The golden ratio spreads each kind
 * evenly over all of them.
 */
function kindOf(index: number): number {
  return Math.imul(index, 0x9e3779b1) >>> 30;
}

/** A request of a load. */
export interface LoadRequest {
  readonly path: string;
  readonly json: string;
}

const toUsual = (index: number): LoadRequest => REQUESTS[kindOf(index)] ?? { path: '/', json: '' };

/** With more open requests the load waits, by default: on a machine too slow for the rate they would only pile up. */
const MAX_OPEN = 100;

/** Requests that may be sent at once after this process paused. */
const MAX_BURST = 20;

/**
 * An open loop: sends requests to a gateway at a fixed rate, whether or not earlier ones have ended. Each request uses
 * the next of the agents; by default there is one, with kept connections, as client libraries have it. `toRequest`: what
 * comes next.
 */
export class Load {
  readonly #url: string;
  readonly #agents: readonly [Agent, ...Agent[]];
  readonly #maxOpen: number;
  readonly #toRequest: (index: number) => LoadRequest;
  readonly #failures: string[] = [];
  readonly #requestIds: string[] = [];
  readonly #open = new Set<Promise<void>>();
  readonly #waiting = new Set<() => void>();
  readonly #running: Promise<void>;
  readonly #startedAtMs = performance.now();
  #sent = 0;
  #ended = 0;
  #isStopped = false;

  constructor(
    url: string,
    perSecond: number,
    agents: readonly [Agent, ...Agent[]] = [new Agent({ keepAlive: true })],
    maxOpen = MAX_OPEN,
    toRequest = toUsual,
  ) {
    this.#url = url;
    this.#maxOpen = maxOpen;
    this.#toRequest = toRequest;
    this.#agents = agents;
    this.#running = sendInOpenLoop({
      perSecond,
      maxBurst: MAX_BURST,
      hasRoom: () => this.#open.size < this.#maxOpen,
      begin: () => this.#begin(),
      isStopped: () => this.#isStopped,
    });
  }

  /** Resolves when this many more requests have ended, well or not. */
  async untilEnded(more: number): Promise<void> {
    const end = this.#ended + more;
    while (this.#ended < end) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  /** Sends no more requests and waits for the open ones. */
  async stop(): Promise<LoadResult> {
    this.#isStopped = true;
    await this.#running;
    const perSecond = Math.round((this.#sent * 1000) / (performance.now() - this.#startedAtMs));
    await Promise.all(this.#open);
    for (const agent of this.#agents) agent.destroy();
    return { requests: this.#sent, perSecond, failures: this.#failures, requestIds: this.#requestIds };
  }

  #begin(): void {
    const sending = this.#send(this.#sent++).finally(() => this.#open.delete(sending));
    this.#open.add(sending);
  }

  async #send(index: number): Promise<void> {
    const { path, json } = this.#toRequest(index);
    // Every agent sends every kind of request.
    const agent = this.#agents[Math.floor(index / REQUESTS.length) % this.#agents.length] ?? this.#agents[0];
    try {
      const { problem, requestId } = await post(agent, this.#url + path, json);
      if (requestId !== null) this.#requestIds.push(requestId);
      if (problem !== null) this.#fail(index, problem);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : String(error);
      this.#fail(index, String(code));
    }
    this.#ended += 1;
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  #fail(index: number, problem: string): void {
    this.#failures.push(`request ${index}, ended at ${new Date().toISOString().slice(11, -1)}: ${problem}`);
  }
}

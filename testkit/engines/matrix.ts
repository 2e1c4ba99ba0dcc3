import type { ConnectionOptions } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { IssuedCertificate } from '../certificates.ts';
import { type FakeReplica, type Script, startFakeReplica } from '../fake-replica.ts';
import { postBytes, RawConnection, type RawResponse } from '../raw-http.ts';
import { type StartedGateway, startGateway } from '../start-gateway.ts';
import { answerOf, type ClientStreamOptions, type EngineCase, type ScriptedEngine } from './engine.ts';
import { LLAMACPP_TOLD, SGLANG_TOLD, TGI_TOLD } from './further/other-engines.ts';
import { type Told, toCases } from './further/told.ts';
import { VLLM_TOLD } from './further/vllm.ts';
import { llamacpp } from './llamacpp.ts';
import { lmstudio } from './lmstudio.ts';
import { ollama } from './ollama.ts';
import { openai } from './openai.ts';
import { sglang } from './sglang.ts';
import { tgi } from './tgi.ts';
import { vllm, vllmBefore0180 } from './vllm.ts';

/** What engines answer at the endpoints that are off by default, by their names. */
const TOLD: Readonly<Record<string, readonly Told[]>> = {
  vllm: VLLM_TOLD,
  sglang: SGLANG_TOLD,
  'llama.cpp': LLAMACPP_TOLD,
  tgi: TGI_TOLD,
};

/** The columns of the matrix. */
export const ENGINES: readonly ScriptedEngine[] = [
  vllm,
  vllmBefore0180,
  ...[sglang, llamacpp, tgi, ollama, lmstudio, openai],
].map((engine) => ({
  ...engine,
  cases: [...engine.cases, ...refusalsOf(engine), ...toCases(TOLD[engine.name] ?? [])],
}));

const FURTHER_ENDPOINTS = [
  ...['responses', 'messages', 'rerank', 'score', 'classify', 'pooling', 'tokenize', 'detokenize'],
];

/** Values of `stream_options` that clients send; undefined: no such member. */
const ASKS: readonly (ClientStreamOptions | null | undefined)[] = [
  undefined,
  null,
  {},
  { include_usage: false },
  { include_usage: true },
  { continuous_usage_stats: true },
  { include_usage: false, continuous_usage_stats: true },
  { include_usage: true, continuous_usage_stats: true },
  // Some engines take these for booleans, others refuse them.
  { include_usage: null },
  { include_usage: 'on' },
  { include_usage: 0, continuous_usage_stats: true },
  { include_usage: 'maybe' },
];

/** The `stream_options` with which this exchange is compared. */
export function asksOf({ isComparable }: EngineCase): readonly (ClientStreamOptions | null | undefined)[] {
  return isComparable === undefined ? ASKS : ASKS.filter(isComparable);
}

/** A comparison that failed. */
export interface Difference {
  readonly ask: string;
  readonly cuts: readonly number[];
  readonly expected: string;
  readonly actual: string;
}

/** A gateway before a replica that plays one exchange of one engine. */
export class Cell implements AsyncDisposable {
  readonly #engine: ScriptedEngine;
  readonly #exchange: EngineCase;
  readonly #replica: FakeReplica;
  readonly #gateway: StartedGateway;
  /** Null: the client uses no TLS. */
  readonly #clientTls: ConnectionOptions | null;
  #client: RawConnection | null = null;
  #cuts: readonly number[] = [];
  #longestPauseMs = 0;

  private constructor(
    engine: ScriptedEngine,
    exchange: EngineCase,
    replica: FakeReplica,
    gateway: StartedGateway,
    clientTls: ConnectionOptions | null,
  ) {
    this.#engine = engine;
    this.#exchange = exchange;
    this.#replica = replica;
    this.#gateway = gateway;
    this.#clientTls = clientTls;
  }

  /**
   * Starts both and sends one ordinary stream, after which the gateway has learnt what it can of the replica. With `tls`
   * clients reach the gateway over TLS, and know this authority. `config`: further keys of the gateway's configuration.
   */
  static async start(
    engine: ScriptedEngine,
    exchange: EngineCase,
    tls?: { readonly server: IssuedCertificate; readonly ca: string },
    config: object = {},
  ): Promise<Cell> {
    const { version } = engine;
    const replica = await startFakeReplica(version === undefined ? {} : { version });
    const gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, engine: engine.engine }],
      // The gateway knows what a connection has shown as long as the connection is open.
      config: {
        endpoints: [...FURTHER_ENDPOINTS],
        timeouts: { upstream_keep_alive: '60s' },
        ...config,
        ...(tls && { gateway: { tls: { cert: tls.server.certPath, key: tls.server.keyPath } } }),
      },
    });
    const cell = new Cell(engine, exchange, replica, gateway, tls === undefined ? null : { ca: tls.ca });
    const [ordinary] = engine.cases;
    if (ordinary !== undefined) {
      replica.answer(cell.#play(ordinary));
      await cell.#ask(ordinary, undefined);
    }
    replica.answer(cell.#play(exchange));
    return cell;
  }

  /**
   * Sends the client's request through the gateway; the replica cuts its answer at these offsets. Compares the answer
   * and the record with the engine's answer to the same bytes.
   */
  async compare(
    ask: ClientStreamOptions | null | undefined,
    cuts: readonly number[],
  ): Promise<Difference | null> {
    this.#cuts = cuts;
    const expected = answerOf(this.#engine, this.#exchange, toBody(this.#exchange, ask));
    for (let attempt = 1; ; attempt++) {
      this.#longestPauseMs = 0;
      const { status, body, record } = await this.#ask(this.#exchange, ask);
      const differing = status === 200 ? differingFields(record, this.#exchange.record) : [];
      if (status === expected.status && body.equals(expected.body) && differing.length === 0) return null;
      // The gateway may hold an event for 50 ms (docs/endpoints.md). After a longer pause of the machine, the result says
      // nothing.
      if (this.#longestPauseMs > MAX_PAUSE_MS && attempt < MAX_ATTEMPTS) continue;
      return {
        ask: JSON.stringify(ask) ?? 'nothing',
        cuts,
        expected: `${expected.status} ${expected.body.toString('utf8')}${toText(differing, this.#exchange.record)}`,
        actual: `${status} ${body.toString('utf8')}${toText(differing, record)}`,
      };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client?.[Symbol.dispose]();
    await this.#gateway.close();
    await this.#replica.close();
  }

  async #ask(exchange: EngineCase, ask: ClientStreamOptions | null | undefined) {
    const request = postBytes(exchange.endpoint, toBody(exchange, ask), ['Content-Type: application/json']);
    const { status, body } = await this.#send(request);
    return { status, body, record: (await this.#gateway.nextRecord()) as object as Record<string, unknown> };
  }

  /** Sends the request on the connection of the previous one, unless the gateway closes that. */
  async #send(request: Buffer): Promise<RawResponse> {
    const client = this.#client ?? (await RawConnection.open(this.#gateway.url, this.#clientTls));
    client.write(request);
    const response = await client.readResponse();
    const isKept = response.isComplete && !client.isClosed && response.header('connection').length === 0;
    if (!isKept) client[Symbol.dispose]();
    this.#client = isKept ? client : null;
    return response;
  }

  #play(exchange: EngineCase): Script {
    return async ({ request, head, write, end }) => {
      const answer = answerOf(this.#engine, exchange, (await request.body).toString('utf8'));
      await head(answer.status, ['Content-Type', answer.contentType]);
      let lastMs = performance.now();
      for (const piece of cutAt(answer.body, this.#cuts)) {
        await write(piece);
        // Two turns of the event loop, in which the gateway reads the piece.
        await turn();
        await turn();
        this.#longestPauseMs = Math.max(this.#longestPauseMs, performance.now() - lastMs);
        lastMs = performance.now();
      }
      end();
    };
  }
}

const MAX_PAUSE_MS = 25;
const MAX_ATTEMPTS = 5;

function refusalsOf({ cases: [ordinary] }: ScriptedEngine): EngineCase[] {
  if (ordinary === undefined) return [];
  const error = (text: string) => JSON.stringify({ error: { message: text, type: 'BadRequestError' } });
  const refusing = (name: string, status: number, body: string): EngineCase => ({
    ...ordinary,
    name,
    source: 'berriai/litellm#5632: servers that know no stream_options',
    record: {},
    refusal: { status, body },
  });
  const named = "Unrecognized request argument supplied: 'stream_options'";
  return [
    refusing('stream_options refused, 400', 400, error(named)),
    refusing('stream_options refused, 422', 422, error(named)),
    refusing('stream_options refused in 200 KB', 400, error(`${named} ${'.'.repeat(200_000)}`)),
  ];
}

function toBody(exchange: EngineCase, ask: ClientStreamOptions | null | undefined): string {
  if (exchange.told !== undefined) return JSON.stringify({ model: 'm', ...exchange.request });
  const text =
    exchange.endpoint === '/v1/completions'
      ? { prompt: 'The sea' }
      : { messages: [{ role: 'user', content: 'Write.' }] };
  const options = ask === undefined ? {} : { stream_options: ask };
  return JSON.stringify({ model: 'm', ...text, stream: true, ...exchange.request, ...options });
}

function cutAt(whole: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [...new Set(places.map((place) => place % (whole.length + 1)))].sort((a, b) => a - b);
  return [0, ...sorted]
    .map((from, i) => whole.subarray(from, sorted[i] ?? whole.length))
    .filter(({ length }) => length > 0);
}

function differingFields(
  record: Record<string, unknown>,
  expected: Readonly<Record<string, unknown>>,
): string[] {
  return Object.keys(expected).filter((name) => !isDeepStrictEqual(record[name], expected[name]));
}

function toText(names: readonly string[], record: Readonly<Record<string, unknown>>): string {
  return names.map((name) => `\n${name}: ${JSON.stringify(record[name])}`).join('');
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

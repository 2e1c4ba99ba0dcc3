import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Lease, type Replica } from '#replicas';
import { createPools, type PoolOptions, toReplicaConfig } from '#testkit/pool.ts';
import { RecordedAttempts } from '../../../src/proxy/attempt/recorded-attempts.ts';
import { CHAT_COMPLETIONS } from '../../../src/proxy/endpoints/chat-completions.ts';
import { EMBEDDINGS } from '../../../src/proxy/endpoints/embeddings.ts';
import type { RecordedEndpoint } from '../../../src/proxy/endpoints/recorded-endpoint.ts';
import { RESPONSES } from '../../../src/proxy/endpoints/responses.ts';
import { readRequestFacts } from '../../../src/proxy/request/inspection/request-facts.ts';
import { openExchange } from './one-request.ts';

type Given = ConstructorParameters<typeof RecordedAttempts>;

const NONE: ReadonlySet<Replica> = new Set();
const VARIANT = { withUsage: true, onFreshConnection: false, mayRetryStatus: false };
const TRACE = { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`, tracestate: undefined };
const CHAT = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] };
const CLIENT = { name: 'c', tenant: 't', feature: null, models: null, expiresAtMs: null, limits: null };

interface Options {
  readonly endpoint?: RecordedEndpoint;
  readonly client?: object | null;
  readonly aliases?: ReadonlyMap<string, string> | null;
  readonly replica?: Parameters<typeof toReplicaConfig>[2];
  readonly engine?: 'vllm' | 'llamacpp' | 'ollama' | 'sglang';
  readonly policy?: PoolOptions['policy'];
  /** The tokens that its client has left; undefined: it has no limits. */
  readonly tokensLeft?: number;
  readonly queuedMs?: number;
  readonly models?: readonly string[];
  /** Doubts about names in the text. */
  readonly textNames?: object | null;
}

/** The attempts of one request to the replicas `a` and `b`, and what its record and its client's limits are told. */
function prepare(body: object, options: Options = {}) {
  const { endpoint = CHAT_COMPLETIONS, client = null, aliases = null, tokensLeft, models = ['m'] } = options;
  const configs = ['a', 'b'].map((name) =>
    toReplicaConfig(name, models, { engine: 'vllm', ...options.replica }),
  );
  const pools = createPools(configs, 1, { policy: options.policy ?? 'round_robin' });
  for (const name of ['a', 'b']) {
    if (options.engine !== undefined)
      pools.registry.find(name)?.learn({ models: [...models], engine: options.engine });
  }
  pools.publish();
  const told: string[] = [];
  const note =
    (name: string) =>
    (...given: readonly unknown[]) =>
      void told.push([name, ...given.filter((each) => typeof each !== 'object' || each === null)].join(' '));
  const noted: { body: { bytes: Buffer; facts: object } | null; storing: Record<string, unknown> | null } = {
    body: null,
    storing: null,
  };
  const recording = {
    noteBody: (inspected: { bytes: Buffer; facts: object }) => {
      noted.body = inspected;
    },
    noteStoring: (storing: Record<string, unknown>) => {
      noted.storing = storing;
    },
    trace: TRACE,
    queuedMs: options.queuedMs ?? 0,
    span: { traceId: '1'.repeat(32), startOperation: note('operation') },
    noteEstimate: ({ total }: { total: number }) => void told.push(`estimate ${total}`),
    startAttempt: note('attempt'),
    noteWait: note('wait'),
    noteWritten: note('written'),
    noteResponse: note('response'),
    noteOpenResponse: note('open'),
    describeBody: note('describe'),
    noteGpuShare: note('share'),
    withdrawAttempt: note('withdraw'),
    failAttempt: note('fail'),
    finishAttempt: note('finish'),
    noteRoute: note('route'),
    notePrefix: note('prefix'),
  };
  const { exchange } = openExchange(['POST /x HTTP/1.1', 'Host: x']);
  if (tokensLeft !== undefined) {
    const reserveTokens = (total: number) => total <= tokensLeft;
    exchange.admission = { reserveTokens, rows: [7] } as unknown as typeof exchange.admission;
  }
  const logged: object[] = [];
  const followed: object[] = [];
  const bytes = Buffer.from(JSON.stringify(body));
  const facts = readRequestFacts(bytes, endpoint, aliases);
  const inspected = {
    bytes,
    facts,
    describeText: () => {
      told.push('text');
      return { names: options.textNames ?? null, promptChars: 40, prefixHashes: ['h1', 'h2'] };
    },
  };
  const request = { exchange, endpoint, client, recording } as unknown as Given[0];
  const held = { release: note('release') } as unknown as Given[1];
  const settings = { queueMs: 1_000, maxEventBytes: 5, aliases, recordedFields: {} } as unknown as Given[3];
  const tools = {
    pool: pools.pool,
    scratch: {},
    log: { debug: (fields: object) => logged.push(fields) },
    followResponse: (response: object) => followed.push(response),
  } as unknown as Given[4];
  const create = () => new RecordedAttempts(request, held, inspected as unknown as Given[2], settings, tools);
  return { ...pools, create, told, noted, exchange, bytes, facts, inspected, logged, followed };
}

/** As `prepare`, with the attempts and the lease of the first one. */
function start(body: object, options: Options = {}) {
  const prepared = prepare(body, options);
  const attempts = prepared.create();
  const lease = attempts.acquire(NONE);
  if (!(lease instanceof Lease)) throw new Error(String(lease));
  return { ...prepared, attempts, lease, replica: lease.replica };
}

describe('a request that leaves a record', () => {
  test('is admitted, and begun at a replica of its model with its own bytes', () => {
    const { attempts, replica, told, exchange, bytes, noted, inspected } = start(CHAT);
    expect([exchange.modelName, told, noted.body]).toEqual(['m', ['operation'], inspected]);
    const begun = attempts.begin(replica, VARIANT);
    expect(begun).toMatchObject({
      replica,
      exchange,
      trace: TRACE,
      body: [bytes],
      upload: null,
      onFreshConnection: false,
      mayRepeat: false,
      mayRetryStatus: false,
      modelName: null,
      routeLines: '',
      observer: attempts,
      reading: {
        endpoint: CHAT_COMPLETIONS,
        maxEventBytes: 5,
        onResponseId: null,
        undo: null,
        choicesPerPrompt: 1,
        isTotalPerChoice: false,
      },
    });
    expect(told).toEqual(['operation', 'attempt']);
    expect(attempts.begin(replica, { ...VARIANT, onFreshConnection: true }).onFreshConnection).toBe(true);
  });

  test('counts the choices that it asks for', () => {
    const { attempts, replica } = start({ ...CHAT, n: 3 });
    expect(attempts.begin(replica, VARIANT).reading?.choicesPerPrompt).toBe(3);
  });

  test('is told as its client calls its model, and sent as the engine does', () => {
    const { attempts, replica, exchange } = start(
      { ...CHAT, model: 'alias' },
      { aliases: new Map([['alias', 'm']]) },
    );
    const { body, modelName } = attempts.begin(replica, VARIANT);
    expect([exchange.modelName, modelName]).toEqual(['alias', 'alias']);
    expect(JSON.parse(Buffer.concat(body ?? []).toString())).toEqual(CHAT);
  });

  test.each([
    ['vllm', { stream: true }, true, true],
    ['vllm', { stream: true, stream_options: { include_usage: true } }, false, false],
    ['vllm', {}, false, false],
    ['llamacpp', {}, false, true],
  ] as const)(
    'may have to be repeated by what is asked of the engine: %s, %j',
    (engine, more, asks, mayRepeat) => {
      const { attempts, replica } = start({ ...CHAT, ...more }, { engine, replica: { engine: 'auto' } });
      const begun = attempts.begin(replica, VARIANT);
      expect([begun.reading?.undo !== null, begun.mayRepeat]).toEqual([asks, mayRepeat]);
      expect(begun.reading?.isTotalPerChoice).toBe(engine === 'llamacpp');
      expect(Buffer.concat(begun.body ?? []).includes('include_usage')).toBe(
        asks || JSON.stringify(more).includes('usage'),
      );
      expect(attempts.begin(replica, { ...VARIANT, withUsage: false }).reading?.undo).toBeNull();
      expect(attempts.begin(replica, { ...VARIANT, mayRetryStatus: true })).toMatchObject({
        mayRepeat: true,
        mayRetryStatus: true,
      });
      replica.noteUsageAccepted();
      expect(attempts.begin(replica, VARIANT).mayRepeat).toBe(engine === 'llamacpp');
    },
  );

  test('without a model is for the only one, where its endpoint allows that', () => {
    const { model: _, ...rest } = { model: 'm', input: 'x' };
    expect(() => prepare(rest, { endpoint: CHAT_COMPLETIONS }).create()).toThrow('missing_model');
    const optional = { ...EMBEDDINGS, needsModel: false };
    const { told, create, exchange, noted, facts } = prepare(rest, { endpoint: optional });
    create();
    expect([exchange.modelName, told]).toEqual(['m', ['operation']]);
    expect(noted.body?.facts).toEqual({ ...facts, model: 'm' });
    expect((noted.body as unknown as { describeText(): object | null }).describeText()).not.toBeNull();
    expect(() => prepare(rest, { endpoint: optional, models: ['m', 'n'] }).create()).toThrow('missing_model');
    const named = prepare({ model: 'n', input: 'x' }, { endpoint: optional });
    named.create();
    expect(named.exchange.modelName).toBe('n');
  });

  test('of a client may be for its models only, as it calls them', () => {
    const client = { ...CLIENT, models: ['alias'] };
    const aliases = new Map([['alias', 'm']]);
    expect(() => prepare(CHAT, { client, aliases }).create()).toThrow('model_not_found');
    prepare({ ...CHAT, model: 'alias' }, { client, aliases }).create();
    prepare(CHAT, { client: CLIENT }).create();
  });

  test.each([
    [1_000, true],
    [30, true],
    [29, false],
  ])('takes its tokens from what its client has left: %i', (tokensLeft, isAdmitted) => {
    const { create, told } = prepare({ ...CHAT, max_tokens: 20 }, { tokensLeft });
    if (isAdmitted) create();
    else expect(create).toThrow('rate_limit_exceeded');
    expect(told).toEqual(['text', 'estimate 30', ...(isAdmitted ? ['operation'] : [])]);
  });

  test.each([
    ['its client may use some models only', { client: { ...CLIENT, models: ['m'] } }, true],
    ['its replica may fold case', { replica: { engine: 'ollama' } }, true],
    ['replicas are chosen by prefix', { policy: 'prefix_affinity' }, true],
    ['nothing of that', {}, false],
    ['its client may use all models', { client: CLIENT }, false],
  ] as const)('has its text read before it is sent where %s', (_, options, isRead) => {
    const { create, told, noted, inspected } = prepare(CHAT, options);
    create();
    expect(told.filter((each) => each === 'text')).toEqual(isRead ? ['text'] : []);
    expect(noted.body === inspected).toBe(!isRead);
    if (isRead) {
      // The record uses what was read.
      expect((noted.body as unknown as { describeText(): object }).describeText()).toMatchObject({
        promptChars: 40,
      });
      expect(told.filter((each) => each === 'text')).toEqual(['text']);
    }
  });

  test.each([
    ['a name that differs in case, of a client with limits', { Model: 'x' }, { tokensLeft: 1_000 }, true],
    ['such a name, to a replica that may fold case', { Model: 'x' }, { replica: { engine: 'ollama' } }, true],
    ['such a name otherwise', { Model: 'x' }, {}, false],
    [
      'such a name in its text',
      {},
      { tokensLeft: 1_000, textNames: { lookalike: 'role', repeated: null } },
      true,
    ],
    ['none in its text', {}, { tokensLeft: 1_000, textNames: { lookalike: null, repeated: null } }, false],
  ] as const)('is refused or not for %s', (_, more, options, isRefused) => {
    const { create } = prepare({ ...CHAT, ...more }, options);
    if (isRefused) expect(create).toThrow('ambiguous_member');
    else create();
  });

  test('is refused by a replica that turns out to fold case', () => {
    const { attempts, registry, publish, replica } = start(
      { ...CHAT, Model: 'x' },
      { replica: { engine: 'auto' }, engine: 'vllm' },
    );
    registry.find('a')?.learn({ models: ['m'], engine: 'ollama' });
    publish();
    expect(() => attempts.begin(replica, VARIANT)).toThrow('ambiguous_member');
  });

  test('is large above a megabyte: then it goes out on a new connection', () => {
    const isFresh = (size: number) => {
      const { attempts, replica } = start({ model: 'm', messages: [], pad: 'x'.repeat(size) });
      return attempts.begin(replica, VARIANT).onFreshConnection;
    };
    const rest = JSON.stringify({ model: 'm', messages: [], pad: '' }).length;
    expect([isFresh(1024 * 1024 - rest), isFresh(1024 * 1024 - rest + 1)]).toEqual([false, true]);
  });

  test('goes to the replica of its prefix where replicas are chosen so', () => {
    const keys: unknown[] = [];
    const prepared = prepare(CHAT, { policy: 'prefix_affinity' });
    const { pool } = prepared;
    const matchPrefix = pool.matchPrefix.bind(pool);
    pool.matchPrefix = (model, hashes) => {
      keys.push([model, hashes]);
      return matchPrefix(model, hashes);
    };
    const attempts = prepared.create();
    expect(keys).toEqual([['m', ['h1', 'h2']]]);
    const names = [1, 2, 3, 4].map(() => {
      const lease = attempts.acquire(NONE);
      if (!(lease instanceof Lease)) throw new Error(String(lease));
      lease[Symbol.dispose]();
      return lease.replica.name;
    });
    expect(new Set(names).size).toBe(1);
    expect(attempts.widen()).toBe(false);
    const inTurn = prepare(CHAT);
    inTurn.pool.matchPrefix = () => expect.fail('asked for a prefix');
    inTurn.create();
  });

  test('waits where its replicas are full, for the rest of its time, and not where too many do', async () => {
    const full = prepare(CHAT, { replica: { maxInflight: 1, engine: 'vllm' }, queuedMs: 990 });
    for (let count = 0; count < 2; count++) full.pool.acquire('m', NONE);
    const attempts = full.create();
    const wait = attempts.acquire(NONE);
    expect(full.told).toEqual(['operation', 'wait']);
    if (typeof wait !== 'object' || !('abandon' in wait)) throw new Error('no wait');
    expect(await wait.result).toBe('overloaded');
    const late = prepare(CHAT, { replica: { maxInflight: 1, engine: 'vllm' }, queuedMs: 1_000 });
    for (let count = 0; count < 2; count++) late.pool.acquire('m', NONE);
    expect([late.create().acquire(NONE), late.told]).toEqual(['overloaded', ['operation']]);
  });

  test('tells its record how its attempts go', () => {
    const { attempts, replica, lease, told, logged } = start(CHAT, {
      replica: { gpuCount: 2, engine: 'vllm' },
    });
    attempts.hold(lease);
    attempts.withdraw();
    attempts.fail(replica, 'upstream_failed', null, 500);
    attempts.finish();
    expect(told).toEqual([
      'operation',
      'route',
      'share',
      'withdraw',
      'fail a upstream_failed 500',
      'finish',
      'open',
    ]);
    expect(logged).toMatchObject([{ replica: 'a', code: 'upstream_failed', trace_id: '1'.repeat(32) }]);
    const without = start(CHAT);
    without.attempts.hold(without.lease);
    expect(without.told).toEqual(['operation', 'route']);
  });
});

describe('the body of a request', () => {
  const large = { ...CHAT, pad: 'x'.repeat(20_000) };
  const isEventStream = { isEventStream: true, facts: null };

  test.each([
    ['written on a new connection', false, false, true],
    ['written on one that may turn out dead', true, false, false],
    ['written, and may have to be repeated', false, true, false],
  ])('is released when it was %s, or not', async (_, isReused, mayRepeat, isReleased) => {
    const { attempts, replica, told } = start(large);
    const begun = attempts.begin(replica, { ...VARIANT, mayRetryStatus: mayRepeat });
    attempts.onWritten(begun, isReused);
    await nextTurn();
    expect(told.slice(2)).toEqual(['written', ...(isReleased ? ['describe', 'release'] : [])]);
    if (isReleased) expect(() => attempts.begin(replica, VARIANT)).toThrow('the body was released');
    attempts.onResponse(begun, isEventStream);
    await nextTurn();
    expect(told.filter((each) => each === 'release')).toEqual(['release']);
    expect(told).toContain('response a');
    expect(replica.acceptsIncludeUsage).toBe(false);
  });

  test('is kept up to 16 KiB', async () => {
    const rest = JSON.stringify({ ...CHAT, pad: '' }).length;
    for (const [size, isReleased] of [
      [16 * 1024, false],
      [16 * 1024 + 1, true],
    ] as const) {
      const { attempts, replica, told } = start({ ...CHAT, pad: 'x'.repeat(size - rest) });
      attempts.onWritten(attempts.begin(replica, VARIANT), false);
      await nextTurn();
      expect(told.includes('release')).toBe(isReleased);
      if (!isReleased) attempts.begin(replica, VARIANT);
    }
  });

  test.each([
    ['a stream for which we asked for usage', { stream: true }, true, true],
    ['an answer that is none', { stream: true }, false, false],
    ['a stream for which we did not', { stream: true, stream_options: { include_usage: true } }, true, false],
  ])('shows by %s whether the replica takes our option', (_, more, isStream, accepts) => {
    const { attempts, replica } = start({ ...CHAT, ...more });
    attempts.onResponse(attempts.begin(replica, VARIANT), { isEventStream: isStream, facts: null });
    expect(replica.acceptsIncludeUsage).toBe(accepts);
  });
});

describe('a request whose response is kept', () => {
  const ASK = { model: 'm', input: 'Hello' };
  const options = { endpoint: RESPONSES };

  /** Requests of two clients after a response that was made at the replica `a`. */
  function startAfter(more: Options = {}, body: object = ASK) {
    const first = start(body, { ...options, ...more });
    const { reading } = first.attempts.begin(first.replica, VARIANT);
    reading?.onResponseId?.('resp_1');
    return first;
  }

  const find = (
    { pool }: { pool: ReturnType<typeof start>['pool'] },
    reader: Parameters<typeof pool.findResponse>[1],
  ) => pool.findResponse('resp_1', reader);

  test('is noted with its replica, its model and its name', () => {
    const first = startAfter();
    expect(find(first, null)?.home).toBe(first.replica);
    expect([find(first, null)?.isCalledAs('m'), find(first, null)?.isCalledAs('x')]).toEqual([true, false]);
    const aliased = startAfter({ aliases: new Map([['alias', 'm']]) }, { ...ASK, model: 'alias' });
    expect(find(aliased, null)?.isCalledAs('alias')).toBe(true);
  });

  test('belongs to the tenant of its client, and to nobody where the request chose its id', () => {
    const owned = startAfter({ client: CLIENT });
    expect(find(owned, { tenant: 't', models: null })?.home).toBe(owned.replica);
    expect(find(owned, { tenant: 'other', models: null })).toBeNull();
    const chosen = startAfter({ client: CLIENT }, { ...ASK, request_id: 'resp_1' });
    expect(find(chosen, null)).toBeNull();
    expect(find(startAfter({}, { ...ASK, request_id: 'resp_1' }), null)).not.toBeNull();
  });

  test.each([
    [{}, false],
    [{ background: true }, true],
    [{ background: false }, false],
  ])('may go on after its answer: %j', (more, isBackground) => {
    const { attempts, replica, noted, followed, shared } = start(
      { ...ASK, ...more },
      { ...options, tokensLeft: 1_000 },
    );
    attempts.begin(replica, VARIANT);
    expect(noted.storing).toMatchObject({ isBackground });
    const { handOver, follow } = noted.storing as { handOver(): void; follow(held: object): void };
    expect(shared.handedOverOf(replica.slot)).toBe(0);
    handOver();
    expect(shared.handedOverOf(replica.slot)).toBe(1);
    follow({ id: 'resp_1' });
    expect(followed).toEqual([{ id: 'resp_1', slot: replica.slot, limitRows: [7] }]);
  });

  test('is followed without rows where its client has no limits, and a chat is not', () => {
    const { attempts, replica, noted, followed } = start(ASK, options);
    attempts.begin(replica, VARIANT);
    (noted.storing as { follow(held: object): void }).follow({});
    expect(followed).toEqual([{ slot: replica.slot, limitRows: [] }]);
    const chat = start(CHAT);
    expect(chat.attempts.begin(chat.replica, VARIANT).reading?.onResponseId).toBeNull();
    expect(chat.noted.storing).toBeNull();
  });

  /** A request after `resp_1`, which was noted at the replica `b`. */
  function prepareNext(body: object, more: Options = {}, tenant: string | null = null) {
    const prepared = prepare(body, { ...options, ...more });
    const [first, second] = [prepared.pool.acquire('m', NONE), prepared.pool.acquire('m', NONE)];
    if (!(first instanceof Lease && second instanceof Lease)) throw new Error('no lease');
    first[Symbol.dispose]();
    prepared.pool.noteResponse('resp_1', second.replica, { model: 'm', calledAs: 'm', tenant });
    return { ...prepared, home: second.replica, held: second };
  }
  const NEXT = { ...ASK, previous_response_id: 'resp_1' };
  const nameOf = (acquired: unknown) => (acquired instanceof Lease ? acquired.replica.name : acquired);

  test('goes to the replica of the response before it, and elsewhere once that was tried', () => {
    const { create, home } = prepareNext(NEXT);
    const attempts = create();
    expect([1, 2].map(() => nameOf(attempts.acquire(NONE)))).toEqual(['b', 'b']);
    expect(nameOf(attempts.acquire(new Set([home])))).toBe('a');
    expect([attempts.widen(), attempts.widen()]).toEqual([true, false]);
    expect([1, 2].map(() => nameOf(attempts.acquire(NONE))).toSorted()).toEqual(['a', 'b']);
  });

  test.each([
    ['a response that is not known', { ...ASK, previous_response_id: 'resp_2' }],
    ['none', ASK],
    ['one that is null', { ...ASK, previous_response_id: null }],
    ['one that is no text', { ...ASK, previous_response_id: 5 }],
  ])('goes to any where it follows %s', (_, body) => {
    const attempts = prepareNext(body).create();
    expect([1, 2].map(() => nameOf(attempts.acquire(NONE))).toSorted()).toEqual(['a', 'b']);
  });

  test('follows responses of its own tenant only, where keys are asked for', () => {
    const client = CLIENT;
    expect(nameOf(prepareNext(NEXT, { client }, 't').create().acquire(NONE))).toBe('b');
    for (const [body, tenant] of [
      [NEXT, 'other'],
      [{ ...ASK, previous_response_id: 'resp_2' }, 't'],
      [{ ...ASK, previous_response_id: 5 }, 't'],
    ] as const) {
      expect(() => prepareNext(body, { client }, tenant).create()).toThrow('previous_response_not_found');
    }
    prepareNext(ASK, { client }, 't').create();
    prepareNext(
      { ...CHAT, previous_response_id: 'resp_2' },
      { client, endpoint: CHAT_COMPLETIONS },
      't',
    ).create();
  });

  test('waits for the replica of the response before it where that is full', async () => {
    const more = { replica: { maxInflight: 1, engine: 'vllm' } } as const;
    const { create, told, held, pool } = prepareNext(NEXT, more);
    const attempts = create();
    const wait = attempts.acquire(NONE);
    expect(told).toEqual(['operation', 'wait']);
    if (typeof wait !== 'object' || !('abandon' in wait)) throw new Error('no wait');
    held[Symbol.dispose]();
    expect(nameOf(await wait.result)).toBe('b');
    expect(nameOf(pool.acquire('m', NONE))).toBe('a');
    const late = prepareNext(NEXT, { ...more, queuedMs: 1_000 });
    expect([late.create().acquire(NONE), late.told]).toEqual(['overloaded', ['operation']]);
  });
});

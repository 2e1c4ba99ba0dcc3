import { describe, expect, test } from 'vitest';
import type { Overview } from '../../../../src/admin/dashboard/overview.ts';
import { toConsequences, toDone } from '../../../../src/admin/dashboard/page/consequences.js';

type Replica = Overview['replicas'][number];

const NO_TRAFFIC: Replica['last_minute'] = {
  requests: 0,
  errors: 0,
  requests_per_s: 0,
  output_tokens_per_s: 0,
  ttft_p50_ms: null,
  ttft_p95_ms: null,
  latency_p50_ms: null,
  latency_p95_ms: null,
};

const replica = (name: string, models: readonly string[] | null, rest: Partial<Replica> = {}) =>
  ({ name, models, drained: false, inflight: 0, last_minute: NO_TRAFFIC, ...rest }) as Replica;

const drainOf = (drained: Replica, ...others: readonly Replica[]) =>
  toConsequences('drain', drained, [drained, ...others]);
const graveOf = (...given: Parameters<typeof drainOf>) =>
  drainOf(...given).flatMap(({ isGrave, text }) => (isGrave ? [text] : []));

describe('a drain', () => {
  test('names who takes over', () => {
    const others = [replica('b', ['m']), replica('c', ['other']), replica('d', ['*'])];
    expect(drainOf(replica('a', ['m']), ...others).map(({ text }) => text)).toEqual([
      'New requests for m go to b, d.',
      'Nothing is in flight there now.',
    ]);
  });

  test('says first that requests will fail, where nobody takes over', () => {
    const a = replica('a', ['m', 'n'], { inflight: 3 });
    const others = [replica('b', ['m']), replica('c', ['n'], { drained: true })];
    expect(drainOf(a, ...others)).toEqual([
      { isGrave: true, text: 'a is the last replica of n: such requests will get 503.' },
      { isGrave: false, text: 'New requests for m go to b.' },
      { isGrave: false, text: '3 requests in flight there will finish; then it is safe to stop.' },
    ]);
  });

  test('is grave where all who take over fail, and names who does', () => {
    const b = replica('b', ['m'], { health: 'failing' });
    expect(graveOf(replica('a', ['m']), b)).toEqual(['New requests for m go to b (failing).']);
    const [first, ...grave] = drainOf(replica('a', ['m']), b, replica('c', ['m']));
    expect(first?.text).toBe('New requests for m go to b (failing), c.');
    expect([first, ...grave].some((consequence) => consequence?.isGrave)).toBe(false);
  });

  test('knows that Ollama takes a name without a tag for its latest', () => {
    const ollama = replica('b', ['m:latest'], { engine: 'ollama' });
    expect(graveOf(replica('a', ['m']), ollama)).toEqual([]);
    expect(graveOf(replica('a', ['m']), replica('b', ['m:latest'], { engine: 'vllm' }))).toHaveLength(1);
  });

  test('of a replica that serves any name is grave if it is the only such one', () => {
    expect(graveOf(replica('a', ['*']), replica('b', ['m']))).toEqual([
      'a is the last replica of any other model: such requests will get 503.',
    ]);
    expect(graveOf(replica('a', ['*']), replica('b', ['*']))).toEqual([]);
  });

  test('of the last replica at all is grave also if its models are not known', () => {
    expect(graveOf(replica('a', null), replica('b', ['m'], { drained: true }))).toHaveLength(1);
    expect(graveOf(replica('a', null), replica('b', ['m']))).toEqual([]);
  });

  test('names five models at most', () => {
    const models = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7'];
    expect(graveOf(replica('a', models))).toEqual([
      'a is the last replica of m1, m2, m3, m4, m5 and 2 more: such requests will get 503.',
    ]);
  });
});

test('an undrain says that the replica should be ready', () => {
  expect(toConsequences('undrain', replica('a', ['m'], { drained: true }), [])).toEqual([
    { isGrave: false, text: 'a takes its turns again at once: it should be ready.' },
  ]);
});

test('an undrain in a fleet says that it takes a moment', () => {
  const a = replica('a', ['m'], { drained: true, unconfirmed: [] });
  expect(toConsequences('undrain', a, [])).toEqual([
    {
      isGrave: false,
      text: 'a takes its turns again within seconds, from all gateways: it should be ready.',
    },
  ]);
});

test('what was reached is not said of gateways that may not have heard of it', () => {
  expect(toDone('drain', 'a', {})).toBe('a gets no new requests.');
  expect(toDone('drain', 'a', { scope: 'fleet', unconfirmed: [] })).toBe('a gets no new requests.');
  for (const answer of [{ scope: 'local' as const }, { scope: 'fleet' as const, unconfirmed: ['b'] }]) {
    expect(toDone('drain', 'a', answer)).toBe('a gets no new requests from this gateway.');
    expect(toDone('undrain', 'a', answer)).toBe('a takes its turns again as the gateways hear of it.');
  }
});

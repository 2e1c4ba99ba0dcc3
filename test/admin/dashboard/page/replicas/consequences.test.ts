import { describe, expect, test } from 'vitest';
import { makeReplica, type OverviewReplica } from '#testkit/dashboard/made-overview.ts';
import { toConsequences, toDone } from '../../../../../src/admin/dashboard/page/replicas/consequences.js';

const replica = (name: string, models: readonly string[] | null, changes: Partial<OverviewReplica> = {}) =>
  makeReplica({ name, models, inflight: 0, ...changes });

const drainOf = (drained: OverviewReplica, ...others: readonly OverviewReplica[]) =>
  toConsequences('drain', drained, [drained, ...others]);
const severeOf = (...given: Parameters<typeof drainOf>) =>
  drainOf(...given).flatMap(({ isSevere, text }) => (isSevere ? [text] : []));

describe('a drain', () => {
  test('names the replicas that take over', () => {
    const others = [replica('b', ['m']), replica('c', ['other']), replica('d', ['*'])];
    expect(drainOf(replica('a', ['m']), ...others).map(({ text }) => text)).toEqual([
      'New requests for m go to b, d.',
      'It has no requests in flight.',
    ]);
  });

  test('counts no shadow among those that take over, and costs no client anything at a shadow', () => {
    const shadow = { shadow: { requests: null, since: null, until: null } };
    const s = replica('s', ['m'], shadow);
    expect(severeOf(replica('a', ['m']), s)).toEqual([
      'a is the last replica for m: these requests will get 503.',
    ]);
    expect(drainOf(s, replica('a', ['m']))[0]).toEqual({
      isSevere: false,
      text: 'It is a shadow: no client waits for it. It gets no more copies.',
    });
    expect(toConsequences('undrain', s, [s])[0]?.text).toContain('s gets new copies at once');
  });

  test('says that a comparison ends with it', () => {
    const shadow = { requests: 0.1, since: null, until: '2026-11-21T12:40:00.000Z' };
    expect(drainOf(replica('s', ['m'], { shadow }), replica('a', ['m']))[0]?.text).toBe(
      'It is a shadow for a while. That ends, and with it the comparison: once undrained, it is what the configuration says.',
    );
  });

  test.each([
    [{ inflight: 2 }, '2 requests in flight will finish. Then it is safe to stop.'],
    [{ background: 1 }, '1 response in the background will finish. Then it is safe to stop.'],
    [
      { inflight: 1, background: 2 },
      '1 request in flight and 2 responses in the background will finish. Then it is safe to stop.',
    ],
    [
      { background: 3, background_unknown: 1 },
      '3 responses in the background. Whether it goes on with 1 of them is not known: until it is, it is not safe to stop.',
    ],
  ])('says what is left on it, and promises no end that nobody knows: %o', (left, text) => {
    expect(drainOf(replica('a', ['m'], left), replica('b', ['m']))[1]?.text).toBe(text);
  });

  test('says that streams are silent, for which it may have to wait', () => {
    const a = replica('a', ['m'], {
      inflight: 3,
      silent_streams: { count: 2, running: 3, oldest_ms: 9_000 },
    });
    expect(drainOf(a, replica('b', ['m'])).at(-1)).toEqual({
      isSevere: false,
      text: '2 of 3 streams silent, for up to 9 s: they may end only by a time-out.',
    });
  });

  test('says first that requests will fail if no replica takes over', () => {
    const a = replica('a', ['m', 'n'], { inflight: 3 });
    const others = [replica('b', ['m']), replica('c', ['n'], { drained: true })];
    expect(drainOf(a, ...others)).toEqual([
      { isSevere: true, text: 'a is the last replica for n: these requests will get 503.' },
      { isSevere: false, text: 'New requests for m go to b.' },
      { isSevere: false, text: '3 requests in flight will finish. Then it is safe to stop.' },
    ]);
  });

  test('says that requests may have to wait if there is no room for what is in flight', () => {
    const a = replica('a', ['m'], { inflight: 3 });
    const [b, c] = [
      { inflight: 9, max_inflight: 10 },
      { inflight: 12, max_inflight: 10 },
    ];
    expect(drainOf(a, replica('b', ['m'], b), replica('c', ['m'], c))[0]?.text).toBe(
      'New requests for m go to b, c. There is room for 1 of the 3 requests in flight: requests may have to wait.',
    );
    expect(drainOf(a, replica('b', ['m'], b), replica('c', ['m']))[0]?.text).toBe(
      'New requests for m go to b, c.',
    );
  });

  test('is severe if all replicas that take over are failing, and names those', () => {
    const b = replica('b', ['m'], { health: 'failing' });
    expect(severeOf(replica('a', ['m']), b)).toEqual(['New requests for m go to b (failing).']);
    const [first, ...others] = drainOf(replica('a', ['m']), b, replica('c', ['m']));
    expect(first?.text).toBe('New requests for m go to b (failing), c.');
    expect([first, ...others].some((consequence) => consequence?.isSevere)).toBe(false);
  });

  test('promises nothing of replicas that do not answer, and is severe if it is the last that does', () => {
    const dead = replica('b', ['m'], { reachability: 'unreachable' });
    const loading = replica('c', ['m'], { reachability: 'loading' });
    const unseen = replica('d', ['m'], { reachability: 'unknown' });
    expect(severeOf(replica('a', ['m']), dead, loading, unseen)).toEqual([
      'a is the last replica for m that answers. What remains: b (unreachable), c (loading), d (not seen yet). ' +
        'These requests will fail.',
    ]);
    const [first] = drainOf(replica('a', ['m']), dead, replica('e', ['m']));
    expect(first).toEqual({
      isSevere: false,
      text: 'New requests for m go to e. Not to b (unreachable).',
    });
  });

  test('of a replica that does not answer itself changes nothing, and says so', () => {
    const a = replica('a', ['m'], { reachability: 'unreachable' });
    const b = replica('b', ['m'], { reachability: 'loading' });
    expect(drainOf(a, b)[0]).toEqual({
      isSevere: false,
      text: 'No replica for m answers, with or without this drain. What remains: b (loading).',
    });
  });

  test('of a replica whose models are not known is severe if no other answers', () => {
    const dead = replica('b', ['m'], { reachability: 'unreachable' });
    expect(severeOf(replica('a', null), dead)).toEqual([
      'The models of a are not known yet, and no other replica answers: requests will fail.',
    ]);
  });

  test('knows that Ollama resolves a name without a tag to its latest', () => {
    const ollama = replica('b', ['m:latest'], { engine: 'ollama' });
    expect(severeOf(replica('a', ['m']), ollama)).toEqual([]);
    expect(severeOf(replica('a', ['m']), replica('b', ['m:latest'], { engine: 'vllm' }))).toHaveLength(1);
  });

  test('of a replica that serves any name is severe if it is the only such one', () => {
    expect(severeOf(replica('a', ['*']), replica('b', ['m']))).toEqual([
      'a is the last replica for any other model: these requests will get 503.',
    ]);
    expect(severeOf(replica('a', ['*']), replica('b', ['*']))).toEqual([]);
  });

  test('of the last replica is severe even if its models are not known', () => {
    expect(severeOf(replica('a', null), replica('b', ['m'], { drained: true }))).toHaveLength(1);
    expect(severeOf(replica('a', null), replica('b', ['m']))).toEqual([]);
  });

  test('names at most five models', () => {
    const models = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7'];
    expect(severeOf(replica('a', models))).toEqual([
      'a is the last replica for m1, m2, m3, m4, m5 and 2 more: these requests will get 503.',
    ]);
  });
});

test('an undrain says that the replica should be ready', () => {
  expect(toConsequences('undrain', replica('a', ['m'], { drained: true }), [])).toEqual([
    { isSevere: false, text: 'a gets new requests at once: make sure that it is ready.' },
  ]);
});

test('an undrain in a fleet says that it takes a moment', () => {
  const a = replica('a', ['m'], { drained: true, unconfirmed: [] });
  expect(toConsequences('undrain', a, [])).toEqual([
    {
      isSevere: false,
      text: 'a gets new requests within seconds, from all gateways: make sure that it is ready.',
    },
  ]);
});

test('the message does not speak for gateways that may not know of the drain yet', () => {
  expect(toDone('drain', 'a', {})).toBe('a gets no new requests.');
  expect(toDone('drain', 'a', { scope: 'fleet', unconfirmed: [] })).toBe('a gets no new requests.');
  for (const answer of [{ scope: 'local' as const }, { scope: 'fleet' as const, unconfirmed: ['b'] }]) {
    expect(toDone('drain', 'a', answer)).toBe('a gets no new requests from this gateway.');
    expect(toDone('undrain', 'a', answer)).toBe(
      'a gets new requests from each gateway as soon as it receives the undrain.',
    );
  }
});

test('the message of a call that a later one has replaced does not say that it is in force', () => {
  const answer = { scope: 'fleet' as const, overtaken: true, unconfirmed: [] };
  expect(toDone('drain', 'a', answer)).toBe('The drain of a did not last.');
  expect(toDone('undrain', 'a', { overtaken: true })).toBe('The undrain of a did not last.');
});

test('the message about a shadow speaks of copies, as the dialog before did', () => {
  const answer = { replica: { shadow: { requests: 0.1 } } };
  expect(toDone('drain', 's', answer)).toBe('s gets no new copies.');
  expect(toDone('undrain', 's', answer)).toBe('s gets new copies again.');
  expect(toDone('undrain', 'a', { replica: { shadow: null } })).toBe('a gets new requests again.');
});

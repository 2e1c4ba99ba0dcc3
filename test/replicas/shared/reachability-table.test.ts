import { describe, expect, test, vi } from 'vitest';
import { allocateSharedState, SharedState } from '../../../src/replicas/shared/shared-state.ts';

const SLOT = 3;

/** Two threads' view of the same replicas. */
function openTwice(nowMs?: () => number) {
  const memory = allocateSharedState(2);
  return [new SharedState(memory, nowMs).reachability, new SharedState(memory, nowMs).reachability] as const;
}

describe('what is known of a replica', () => {
  test('is nothing at first, and again when it is forgotten', () => {
    const [table] = openTwice();
    const NOTHING = { state: 'unknown', since: null, lastedMs: 0, reason: null };
    expect(table.stateOf(SLOT)).toEqual(NOTHING);
    table.note(SLOT, 'connection_refused');
    table.forget(SLOT);
    expect(table.stateOf(SLOT)).toEqual(NOTHING);
  });

  test('is the last finding of any thread', () => {
    const [one, other] = openTwice();
    one.note(SLOT, 'connect_timeout');
    expect(other.stateOf(SLOT)).toMatchObject({ state: 'unreachable', reason: 'connect_timeout' });
    other.note(SLOT, 'loading_model');
    expect(one.stateOf(SLOT)).toMatchObject({ state: 'loading', reason: 'loading_model' });
    one.noteAnswered(SLOT, 200, true);
    expect(other.stateOf(SLOT)).toMatchObject({ state: 'reachable', reason: null });
    expect(one.stateOf(SLOT + 1).state).toBe('unknown');
  });

  test('keeps its time while only the reason changes', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-01-01T00:00:00Z') });
    try {
      let nowMs = 5_000;
      const [table] = openTwice(() => nowMs);
      table.note(SLOT, 'connection_refused');
      vi.advanceTimersByTime(60_000);
      nowMs += 1_000;
      table.note(SLOT, 'name_not_resolved');
      expect(table.stateOf(SLOT)).toEqual({
        state: 'unreachable',
        since: '2026-01-01T00:00:00.000Z',
        // The time of day was set meanwhile.
        lastedMs: 1_000,
        reason: 'name_not_resolved',
      });
      table.note(SLOT, 'reachable');
      expect(table.stateOf(SLOT).since).toBe('2026-01-01T00:01:00.000Z');
    } finally {
      vi.useRealTimers();
    }
  });

  test.each([
    ['a server that is no engine', 'not_an_engine', 404, 'unreachable'],
    ['a server that is no engine', 'not_an_engine', 200, 'reachable'],
    ['an engine that has failed', 'engine_failed', 500, 'unreachable'],
    ['an engine that has failed', 'engine_failed', 400, 'reachable'],
    ['an engine that loads', 'loading_model', 503, 'loading'],
    ['an engine that loads', 'loading_model', 404, 'reachable'],
    ['a replica that refused connections', 'connection_refused', 503, 'reachable'],
  ] as const)('of %s (%s) is after an answer with status %i: %s', (_name, finding, status, state) => {
    const [table] = openTwice();
    table.note(SLOT, finding);
    table.noteAnswered(SLOT, status, true);
    expect(table.stateOf(SLOT).state).toBe(state);
  });

  test('that a server answers a request for its models with 2xx does not make it an inference server', () => {
    const [table] = openTwice();
    table.note(SLOT, 'not_an_engine');
    table.noteAnswered(SLOT, 200, false);
    expect(table.stateOf(SLOT).reason).toBe('not_an_engine');
  });

  test('does not become "no inference server" if it has listed models or served, even after a drain', () => {
    const [table] = openTwice();
    table.note(SLOT, 'reachable', true);
    table.note(SLOT, 'not_an_engine');
    expect(table.stateOf(SLOT).state).toBe('reachable');
    table.forget(SLOT);
    table.note(SLOT, 'not_an_engine');
    expect(table.stateOf(SLOT).state).toBe('reachable');
    table.clear(SLOT);
    table.note(SLOT, 'not_an_engine');
    expect(table.stateOf(SLOT)).toMatchObject({ state: 'unreachable', reason: 'not_an_engine' });
  });
});

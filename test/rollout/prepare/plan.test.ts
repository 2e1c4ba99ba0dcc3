import { describe, expect, test } from 'vitest';
import { findUnservedModel, planRollout } from '../../../src/rollout/prepare/begin.ts';

const replica = (
  name: string,
  changes: {
    models?: readonly string[] | null;
    isDrained?: boolean;
    isShadow?: boolean;
    isAway?: boolean;
  } = {},
) => ({
  name,
  url: `http://${name}`,
  host: name,
  models: ['m'],
  isDrained: false,
  inflight: 0,
  reason: null,
  isSafeToStop: false,
  isReachable: true,
  isAway: false,
  share: 1,
  failingBy: [],
  drainedBy: [],
  isShadow: false,
  ...changes,
});

const NONE = { names: [], model: null, isAll: false, skip: [] };

describe('what is rolled', () => {
  const replicas = [replica('a'), replica('b', { isDrained: true }), replica('c', { models: ['n'] })];

  test('is what the command line names, in its order, each once', () => {
    expect(planRollout({ ...NONE, names: ['c', 'b', 'c'] }, replicas)).toEqual({
      names: ['c', 'b'],
      leftAlone: [],
    });
  });

  test('is what serves the model, or everything, but what was drained before', () => {
    expect(planRollout({ ...NONE, model: 'm' }, replicas)).toEqual({ names: ['a'], leftAlone: ['b'] });
    expect(planRollout({ ...NONE, isAll: true }, replicas)).toEqual({ names: ['a', 'c'], leftAlone: ['b'] });
  });

  test('is no shadow that is not named', () => {
    const beside = [...replicas, replica('s', { isShadow: true })];
    const leftAlone = ['b', 's'];
    expect(planRollout({ ...NONE, model: 'm' }, beside)).toEqual({ names: ['a'], leftAlone });
    expect(planRollout({ ...NONE, isAll: true }, beside)).toEqual({ names: ['a', 'c'], leftAlone });
    expect(planRollout({ ...NONE, names: ['s'] }, beside)).toEqual({ names: ['s'], leftAlone: [] });
  });

  test('leaves out what is skipped', () => {
    expect(planRollout({ ...NONE, isAll: true, skip: ['a', 'b'] }, replicas)).toEqual({
      names: ['c'],
      leftAlone: [],
    });
    expect(() => planRollout({ ...NONE, isAll: true, skip: ['x'] }, replicas)).toThrow(
      'no replica "x" to skip',
    );
    expect(() => planRollout({ ...NONE, names: ['a'], skip: ['a'] }, replicas)).toThrow(
      'all replicas are skipped',
    );
  });

  test('must be named in one way, and must exist', () => {
    expect(() => planRollout(NONE, replicas)).toThrow('name the replicas, or give --model or --all');
    expect(() => planRollout({ ...NONE, names: ['a'], isAll: true }, replicas)).toThrow('name the replicas');
    expect(() => planRollout({ ...NONE, names: ['x'] }, replicas)).toThrow(
      'no replica "x": there are a, b, c',
    );
    expect(() => planRollout({ ...NONE, model: 'x' }, replicas)).toThrow('no replica serves the model "x"');
  });
});

describe('a model would be left without a server', () => {
  test('if its only replica is rolled, or as many as there are at a time', () => {
    expect(findUnservedModel(['a'], 1, [replica('a'), replica('c', { models: ['n'] })])).toContain(
      'm would be',
    );
    expect(findUnservedModel(['a', 'b'], 2, [replica('a'), replica('b')])).toContain('m would be');
    expect(findUnservedModel(['a', 'b'], 1, [replica('a'), replica('b')])).toBeNull();
  });

  test('if the others are shadows', () => {
    const shadow = replica('s', { isShadow: true });
    expect(findUnservedModel(['a'], 1, [replica('a'), shadow])).toContain('1 of 1 can serve it');
    expect(findUnservedModel(['s'], 1, [replica('a'), shadow])).toBeNull();
  });

  test('if the others are drained or away', () => {
    const others = [replica('b', { isDrained: true }), replica('c', { isAway: true })];
    expect(findUnservedModel(['a'], 1, [replica('a'), ...others])).toContain('1 of 3 can serve it');
    expect(findUnservedModel(['b'], 1, [replica('a'), ...others])).toBeNull();
  });
});

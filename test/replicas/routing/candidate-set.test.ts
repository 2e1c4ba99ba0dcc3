import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CandidateSet } from '../../../src/replicas/routing/candidate-set.ts';

test('the next member is the first at or after an index, in a set', () => {
  const set = new CandidateSet(6, (index) => index === 1 || index === 4);
  expect([0, 1, 2, 3, 4, 5].map((index) => set.from(index))).toEqual([1, 1, 4, 4, 4, 1]);
  expect([set.after(1), set.after(4), set.size]).toEqual([4, 1, 2]);
});

test('an index beyond the last one, from when there were more, counts modulo their number', () => {
  expect(new CandidateSet(3, () => true).from(7)).toBe(1);
});

test('an empty set has no next member', () => {
  expect(new CandidateSet(3, () => false).from(0)).toBe(-1);
  expect(new CandidateSet(0, () => true).from(0)).toBe(-1);
});

test('as many steps as there are members visit each of them once', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 50 }), fc.nat(99), (members, start) => {
      const set = new CandidateSet(members.length, (index) => members[index] === true);
      const visited: number[] = [];
      let index = set.from(start);
      for (let step = 0; step < set.size; step++) {
        visited.push(index);
        index = set.after(index);
      }
      const places = members.flatMap((isMember, index) => (isMember ? [index] : []));
      expect(visited.toSorted((a, b) => a - b)).toEqual(places);
    }),
  );
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CandidateSet } from '../../../src/replicas/routing/candidate-set.ts';

test('the next place is the first at or after it that is in the circle, going round', () => {
  const circle = new CandidateSet(6, (place) => place === 1 || place === 4);
  expect([0, 1, 2, 3, 4, 5].map((place) => circle.from(place))).toEqual([1, 1, 4, 4, 4, 1]);
  expect([circle.after(1), circle.after(4), circle.size]).toEqual([4, 1, 2]);
});

test('a turn left beyond the last place, when there were more, begins where its remainder is', () => {
  expect(new CandidateSet(3, () => true).from(7)).toBe(1);
});

test('an empty circle has no next place', () => {
  expect(new CandidateSet(3, () => false).from(0)).toBe(-1);
  expect(new CandidateSet(0, () => true).from(0)).toBe(-1);
});

test('going on as often as there are places visits each of them once', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 50 }), fc.nat(99), (members, start) => {
      const circle = new CandidateSet(members.length, (place) => members[place] === true);
      const visited: number[] = [];
      let place = circle.from(start);
      for (let step = 0; step < circle.size; step++) {
        visited.push(place);
        place = circle.after(place);
      }
      const places = members.flatMap((isMember, index) => (isMember ? [index] : []));
      expect(visited.toSorted((a, b) => a - b)).toEqual(places);
    }),
  );
});

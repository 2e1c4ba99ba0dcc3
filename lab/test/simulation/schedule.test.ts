import { expect, test } from 'vitest';
import { Schedule } from '../../simulation/engine/schedule.ts';
import { Actor } from '../../simulation/world/actors/actor.ts';

test('what comes after so many steps of its owner counts no steps of others, and nothing comes between', () => {
  const happened: string[] = [];
  const schedule = new Schedule(({ label }) => happened.push(label));
  const one = new Actor('one');
  const other = new Actor('other');
  const nothing = () => undefined;
  schedule.afterSteps(2, one, 'after two of one', nothing);
  schedule.after(1, one, 'one 1', nothing);
  schedule.after(2, other, 'other', nothing);
  schedule.after(3, one, 'one 2', nothing);
  schedule.after(3, other, 'other at the same time', nothing);

  while (schedule.runNext(Number.POSITIVE_INFINITY));

  expect(happened).toEqual(['one 1', 'other', 'one 2', 'after two of one', 'other at the same time']);
});

test('what comes after steps of an owner that has ended never comes', () => {
  const happened: string[] = [];
  const schedule = new Schedule(({ label }) => happened.push(label));
  const owner = new Actor('owner');
  schedule.afterSteps(1, owner, 'too late', () => undefined);
  schedule.after(1, owner, 'ends', () => {
    owner.hasEnded = true;
  });

  while (schedule.runNext(Number.POSITIVE_INFINITY));

  expect(happened).toEqual(['ends']);
});

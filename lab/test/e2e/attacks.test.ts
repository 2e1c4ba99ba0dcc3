import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ATTACKS } from '../../attacks/attacks.ts';
import { judge } from '../../attacks/judge.ts';
import { type AttackedGateway, startAttackedGateway } from '../../attacks/run-attack.ts';

let gateway: AttackedGateway;

beforeAll(async () => {
  gateway = await startAttackedGateway();
});

afterAll(() => gateway[Symbol.asyncDispose]());

describe.each(ATTACKS)('$group', ({ attacks }) => {
  test.for(attacks)('$name has its status, reaches nobody and costs little', async (attack) => {
    expect(judge(attack, await gateway.run(attack))).toEqual([]);
  });
});

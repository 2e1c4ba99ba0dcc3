import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ATTACKS } from '../../lab/attacks/attacks.ts';
import { judge } from '../../lab/attacks/judge.ts';
import { type AttackedGateway, startAttackedGateway } from '../../lab/attacks/run-attack.ts';

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

import { afterAll, beforeAll, expect, test } from 'vitest';
import { judge } from '../../attacks/judge.ts';
import { TLS_REPLICA } from '../../attacks/tls/replica/replica-attacks.ts';
import {
  type GatewayAttackedByReplica,
  startAttackedByReplica,
} from '../../attacks/tls/replica/start-attacked-by-replica.ts';

let gateway: GatewayAttackedByReplica;

beforeAll(async () => {
  gateway = await startAttackedByReplica();
}, 300_000);

afterAll(() => gateway[Symbol.asyncDispose]());

test.for(TLS_REPLICA)('$name ends as it has to, and costs little', async (attack) => {
  expect(judge(attack, await gateway.run(attack))).toEqual([]);
});

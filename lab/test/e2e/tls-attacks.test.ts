import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { judgeTls } from '../../attacks/judge.ts';
import { startTlsAttackedGateways, type TlsAttackedGateways } from '../../attacks/tls/run-tls-attack.ts';
import { TLS_ATTACKS } from '../../attacks/tls/tls-attacks.ts';

let gateways: TlsAttackedGateways;

beforeAll(async () => {
  gateways = await startTlsAttackedGateways();
}, 300_000);

afterAll(() => gateways[Symbol.asyncDispose]());

describe.each(TLS_ATTACKS)('$group', ({ attacks }) => {
  test.for(attacks)('$name ends as it has to, leaves nothing open and costs little', async (attack) => {
    expect(judgeTls(attack, await gateways.run(attack, attack.listeners))).toEqual([]);
  });
});

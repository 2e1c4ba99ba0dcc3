import { Agent, type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';

const CALLS = 600;
const MAX_WAITS = 500;

test('of 600 waits for a drain 500 are answered when it is over and the others at once, and both listeners serve meanwhile', async () => {
  const gate = createGate();
  await using draining = await startFakeReplica({ name: 'a', script: gate.script });
  await using other = await startFakeReplica({ name: 'b' });
  await using gateway = await startGateway({ replicas: [draining, other] });
  const held = gateway.chat({});
  await draining.untilRequests(1);

  const agent = new Agent({ maxSockets: CALLS });
  onTestFinished(() => agent.destroy());
  let refusedCount = 0;
  const waits = Array.from({ length: CALLS }, async () => {
    const answer = await drain(gateway.adminUrl, agent);
    if (answer.error?.code === 'too_many_waits') refusedCount++;
    return answer;
  });
  await expect.poll(() => gateway.replicas()).toMatchObject([{ drained: true }, { drained: false }]);
  for (let count = 0; count < 20; count++) {
    const response = await gateway.chat({});
    expect(response.status).toBe(200);
    await response.text();
  }
  expect(draining.requests).toHaveLength(1);
  // No place is taken twice, though all calls may be there before the first drain is on disk.
  await expect.poll(() => refusedCount).toBe(CALLS - MAX_WAITS);
  gate.open();

  await (await held).text();
  const answers = await Promise.all(waits);
  const safe = answers.filter(({ replica }) => replica?.safe_to_stop === true);
  expect(safe).toHaveLength(MAX_WAITS);
});

interface DrainAnswer {
  readonly replica?: { readonly safe_to_stop: boolean | null };
  readonly error?: { readonly code: string };
}

function drain(adminUrl: string, agent: Agent): Promise<DrainAnswer> {
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  return new Promise((resolve, reject) => {
    request(`${adminUrl}/admin/replicas/a/drain?wait=1h`, { method: 'POST', agent, headers })
      .once('response', (response: IncomingMessage) => resolve(json(response) as Promise<DrainAnswer>))
      .once('error', reject)
      .end();
  });
}

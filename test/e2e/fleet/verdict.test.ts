import { expect, test } from 'vitest';
import { answerJson, COMPLETION } from '#testkit/fake-replica.ts';
import { chatTo, type FleetGateway, startFleet } from './start-fleet.ts';

interface Verdict {
  readonly verdict: string;
  readonly gateways: number;
  readonly requests: number;
  readonly baseline_requests: number;
  readonly reasons: readonly string[];
}

const ask = async ({ gateway }: FleetGateway): Promise<Verdict> =>
  (await (await gateway.admin('/admin/verdict?candidate=y&baseline=x')).json()) as Verdict;

test('requests of every gateway of a fleet count for a verdict, whichever is asked, also without the server', async () => {
  await using fleet = await startFleet('gw-a', 'gw-b');
  const [first, second] = fleet.gateways;
  fleet.replicas.x.answer(answerJson(COMPLETION));
  fleet.replicas.y.answer(answerJson({ error: { message: 'no' } }, { status: 500 }));
  await expect.poll(() => ask(first)).toMatchObject({ verdict: 'undecided', gateways: 2, requests: 0 });

  // All requests go through the gateway that is not asked.
  const bad = async () => {
    await chatTo(second, 20);
    return await ask(first);
  };
  await expect.poll(bad).toMatchObject({ verdict: 'bad', reasons: ['errors'], gateways: 2 });
  expect(first.gateway.records).toEqual([]);
  await expect.poll(() => ask(second)).toMatchObject({ verdict: 'bad', gateways: 2 });

  first.link.become('cut');
  const known = await ask(first);
  await chatTo(second, 20);
  expect(await ask(first)).toMatchObject({ verdict: 'bad', gateways: 2, requests: known.requests });
});

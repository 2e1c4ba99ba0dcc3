import { expect, test } from 'vitest';
import { type FleetGateway, startFleet } from './start-fleet.ts';

/** The drains on the timeline of a gateway. */
async function drainsOn({ gateway }: FleetGateway) {
  const answer = await gateway.admin('/admin/timeline?since=1h');
  const { events } = (await answer.json()) as {
    readonly events: readonly {
      readonly kind: string;
      readonly subject: string;
      readonly from: string;
      readonly until: string | null;
    }[];
  };
  return events.filter(({ kind }) => kind === 'drain');
}

test('a drain is one band on the timeline of every gateway, whichever began and ended it', async () => {
  await using fleet = await startFleet();
  const [first, second] = await Promise.all([
    fleet.start('gw-a', {}, { history: {} }),
    fleet.start('gw-b', {}, { history: {} }),
  ]);
  await second.drain('y', '?reason=new%20weights');
  await first.until('y', ({ drained }) => drained);
  await first.undrain('y');
  await second.until('y', ({ drained }) => !drained);

  for (const each of [first, second]) {
    expect(await drainsOn(each)).toMatchObject([
      { subject: 'y', until: expect.any(String), details: { reason: 'new weights' } },
    ]);
  }
});

test('a drain that an undrain at another gateway overtook is a band that ends', async () => {
  await using fleet = await startFleet();
  const [first, second] = await Promise.all([
    fleet.start('gw-a', {}, { history: {} }),
    fleet.start('gw-b', {}, { history: {} }),
  ]);
  first.link.delayBy(236);
  const drained = first.drain('x');
  await first.until('x', (replica) => replica.drained);
  await second.undrain('x');
  expect(await drained).toMatchObject({ overtaken: true });

  expect(await drainsOn(first)).toMatchObject([{ subject: 'x', until: expect.any(String) }]);
});

test('a drain that came late from another gateway begins and ends on the timeline when it did here', async () => {
  await using fleet = await startFleet();
  const [first, second] = await Promise.all([
    fleet.start('gw-a', {}, { history: {} }),
    fleet.start('gw-b', {}, { history: {} }),
  ]);
  await second.drain('x');
  await first.until('x', ({ drained }) => drained);
  first.link.become('cut');
  await Promise.all([second.undrain('x'), second.drain('y')]);
  const healedAt = new Date().toISOString();
  first.link.become('whole');
  await first.until('x', ({ drained }) => !drained);
  await first.until('y', ({ drained }) => drained);

  const bands = new Map((await drainsOn(first)).map((band) => [band.subject, band]));
  expect(bands.get('x')?.until ?? '').toSatisfy((until: string) => until >= healedAt);
  expect(bands.get('y')?.from ?? '').toSatisfy((from: string) => from >= healedAt);
});

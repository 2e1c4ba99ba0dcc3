import { expect, test } from 'vitest';
import { startFleet } from './start-fleet.ts';

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

  for (const { gateway } of [first, second]) {
    const answer = await gateway.admin('/admin/timeline?since=1h');
    const { events } = (await answer.json()) as { readonly events: readonly { readonly kind: string }[] };
    expect(events.filter(({ kind }) => kind === 'drain')).toMatchObject([
      { subject: 'y', until: expect.any(String), details: { reason: 'new weights' } },
    ]);
  }
});

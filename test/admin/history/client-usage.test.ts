import { expect, it } from 'vitest';
import { HistoryRefusal } from '#history';
import { createClientUsage } from '../../../src/admin/history/client-usage.ts';

it('lets four clients ask at the same time, and tells further ones to try again', async () => {
  const asked: { readonly fail: (error: HistoryRefusal) => void }[] = [];
  const tellUsage = createClientUsage({
    ask: () => new Promise((_, fail) => void asked.push({ fail })),
  });
  const client = { name: 'a', tenant: 'a' };
  const four = Array.from({ length: 4 }, () => tellUsage(client, ''));
  expect(await tellUsage(client, '')).toMatchObject({ status: 503 });
  for (const { fail } of asked) fail(new HistoryRefusal('too_slow'));
  expect((await Promise.all(four)).map(({ status }) => status)).toEqual([503, 503, 503, 503]);
  void tellUsage(client, '');
  expect(asked).toHaveLength(5);
});

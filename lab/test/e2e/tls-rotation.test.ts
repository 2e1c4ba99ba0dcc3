import { expect, test } from 'vitest';
import { rotateUnderLoad } from '../../tls/rotation.ts';

test('under load, the certificate is replaced three times, and no request fails, on kept or on new connections', async () => {
  const settings = { perSecond: 60, rotationCount: 3, requestsBetween: 20, workers: 2 };
  const { requests, kept, fresh, ...result } = await rotateUnderLoad(settings);
  expect(result).toMatchObject({
    failures: [],
    refusedStatuses: [422, 422, 422],
    subjects: ['spangate 1', 'spangate 2', 'spangate 3'],
  });
  expect(requests).toBeGreaterThanOrEqual(7 * settings.requestsBetween);
  expect(kept).toBeLessThan(requests / 2);
  expect(fresh).toBeGreaterThan(requests / 4);
});

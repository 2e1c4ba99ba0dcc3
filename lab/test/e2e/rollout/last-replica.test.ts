import { expect, test } from 'vitest';
import { rollLastReplica } from '../../../rollout/roll-in-hard-cases.ts';

test('under load, gateway rollout refuses to restart the last replica that works', async () => {
  const report = await rollLastReplica();
  expect(report).toMatchObject({ exitCode: 1, failures: [], reachedWhileDrained: 0, cut: 0, restarted: [] });
});

import { describe, expect, it } from 'vitest';
import { invoke } from '../invoke.ts';
import { startAdmin, TOKEN } from '../scripted-admin.ts';

describe('gateway stats', () => {
  const STATS = { exported: 1000, dropped: 0, queued: 12, failed_calls: 3 };

  it('shows the counters as a table, or as JSON', async () => {
    const { url } = await startAdmin(() => ({ body: STATS }));
    expect((await invoke(['stats', '--admin', url], TOKEN)).stdout).toBe(
      'COUNTER       VALUE\nexported      1,000\ndropped           0\nqueued           12\nfailed_calls      3\n',
    );
    expect(JSON.parse((await invoke(['stats', '--admin', url, '--json'], TOKEN)).stdout)).toEqual(STATS);
  });
});

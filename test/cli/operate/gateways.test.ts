import { describe, expect, it } from 'vitest';
import { invoke } from '../invoke.ts';
import { startAdmin, TOKEN } from '../scripted-admin.ts';

const GATEWAYS = {
  gateways: [
    { name: 'gw-a', id: 'one', self: true, alive: true, inflight: 12 },
    { name: 'gw-b', id: 'two', self: false, alive: false, inflight: null },
    { name: 'gw-c', id: 'three', self: false, alive: null, inflight: null },
  ],
};

describe('gateway gateways', () => {
  it('shows the gateways of the fleet as a table', async () => {
    const { url, calls } = await startAdmin(() => ({ body: GATEWAYS }));
    const { exitCode, stdout } = await invoke(['gateways', '--admin', url], TOKEN);
    expect(stdout).toBe(
      `NAME  STATE     INFLIGHT  ADMIN API\ngw-a  alive     12        ${url}\ngw-b  vanished  -\ngw-c  unknown   -\n`,
    );
    expect({ exitCode, calls }).toEqual({ exitCode: 0, calls: ['GET /admin/gateways Bearer token-1'] });
  });

  it('prints the answer itself with --json', async () => {
    const { url } = await startAdmin(() => ({ body: GATEWAYS }));
    const { stdout } = await invoke(['gateways', '--json', '--admin', url], TOKEN);
    expect(JSON.parse(stdout)).toEqual(GATEWAYS);
  });
});

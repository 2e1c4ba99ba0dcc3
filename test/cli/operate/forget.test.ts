import { describe, expect, it } from 'vitest';
import { invoke } from '../invoke.ts';
import { startAdmin, TOKEN } from '../scripted-admin.ts';

describe('gateway forget', () => {
  it('tells the gateway not to wait for another one', async () => {
    const { url, calls } = await startAdmin(() => ({ body: { gateways: [] } }));
    const { exitCode, stdout } = await invoke(['forget', 'gw b', '--admin', url], TOKEN);
    expect(stdout).toBe('gw b is forgotten: drains no longer wait for it\n');
    expect({ exitCode, calls }).toEqual({
      exitCode: 0,
      calls: ['POST /admin/gateways/gw%20b/forget Bearer token-1'],
    });
  });

  it('prints why the gateway refuses, and exits with 1', async () => {
    const error = { message: 'The gateway runs: stop it first.', code: 'gateway_alive' };
    const { url } = await startAdmin(() => ({ status: 409, body: { error } }));
    expect(await invoke(['forget', 'gw-a', '--admin', url], TOKEN)).toMatchObject({
      exitCode: 1,
      stderr: 'gateway: the admin API refused: The gateway runs: stop it first. (gateway_alive)\n',
    });
  });
});

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { keepChatting } from '#testkit/load/paced-chats.ts';
import { ADMIN_TOKEN } from '#testkit/start-gateway.ts';
import { invoke, start } from '../../cli/invoke.ts';
import { startShadowScene, words } from './scene.ts';

const TOKEN = { SVC_ADMIN_TOKEN: ADMIN_TOKEN };

describe('gateway compare', () => {
  test('makes a replica a shadow, writes a report, and lets it serve again', async () => {
    await using scene = await startShadowScene({
      role: 'serve',
      shadow: { max_inflight: 50 },
      config: { currency: 'CHF', gpu_hour_price: { H100: 3_600 } },
      replica: { gpu_model: 'H100', gpu_count: 1 },
    });
    const { gateway, a, s } = scene;
    a.answer(words('The capital ', 'is Paris'));
    s.answer(words('The capital ', 'is Lyon'));
    const report = join(gateway.stateDir, 'report.html');
    const args = ['compare', 's', '--shadow', '100%', '--for', '6s', '--report', report];
    const running = invoke([...args, '--admin', gateway.adminUrl], TOKEN);
    await expect.poll(async () => (await gateway.replicas())[1]).toMatchObject({ shadow: { requests: 1 } });
    const served = s.requests.length;
    const pace = { clientCount: 2, pauseMs: 50, members: { stream: true, temperature: 0 } };
    const chats = keepChatting(gateway, pace);

    const outcome = await running;
    await chats[Symbol.asyncDispose]();

    expect(outcome.stdout).toContain('pairs of answers to the same requests');
    expect(outcome.stdout).toContain('| time to the first token | ×');
    expect(outcome.stdout).toMatch(/^\| cost of .* \| [\d.,]+ CHF \| [\d.,]+ CHF \|$/m);
    expect([3, 4]).toContain(outcome.exitCode);
    expect((await gateway.replicas())[1]).toMatchObject({ shadow: null, drained: false });
    expect(s.requests.length).toBeGreaterThan(served);
    const html = await readFile(report, 'utf8');
    expect(html).toContain('<svg');
    expect(html).not.toContain('Paris');
    expect(html).not.toMatch(/src=|href=|@import/);
  });

  test('lets the replica serve again when it is interrupted', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway } = scene;
    const running = start(['compare', 's', '--for', '10m', '--admin', gateway.adminUrl], TOKEN);
    await expect.poll(async () => (await gateway.replicas())[1]).toMatchObject({ shadow: {} });

    running.interrupt();

    expect((await running.ended).exitCode).toBe(4);
    expect((await gateway.replicas())[1]).toMatchObject({ shadow: null });
  });

  test('ends when somebody drains the replica, and sends it no further copies', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway } = scene;
    const running = start(['compare', 's', '--for', '10m', '--admin', gateway.adminUrl], TOKEN);
    await expect.poll(async () => (await gateway.replicas())[1]).toMatchObject({ shadow: {} });

    await gateway.admin('/admin/replicas/s/drain', { method: 'POST' });

    const outcome = await running.ended;
    expect(outcome).toMatchObject({ exitCode: 1 });
    expect(outcome.stderr).toContain('s gets no copies for this comparison any more: it was drained');
    expect((await gateway.replicas())[1]).toMatchObject({ drained: true, shadow: null });
  });

  test('changes nothing if the replica is the last that serves its model', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway } = scene;
    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });

    const outcome = await invoke(['compare', 's', '--admin', gateway.adminUrl], TOKEN);

    expect(outcome).toMatchObject({ exitCode: 1 });
    expect(outcome.stderr).toContain('Nothing was changed: no other replica answers for m');
    expect((await gateway.chat()).status).toBe(200);
  });

  test('ends no shadow that it has not made: a wrong name before it is refused', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway } = scene;
    await gateway.admin('/admin/replicas/s/shadow?requests=10%25&for=30m', { method: 'POST' });

    const outcome = await invoke(['compare', 'typo,s', '--admin', gateway.adminUrl], TOKEN);

    expect(outcome).toMatchObject({ exitCode: 1 });
    expect((await gateway.replicas())[1]).toMatchObject({ shadow: { requests: 0.1 } });
  });

  test('refuses a replica that a call has made a shadow: at its end that would serve clients', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway } = scene;
    await gateway.admin('/admin/replicas/s/shadow?requests=10%25&for=30m', { method: 'POST' });

    const outcome = await invoke(['compare', 's', '--for', '1s', '--admin', gateway.adminUrl], TOKEN);

    expect(outcome).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('s is a shadow until 20') });
    expect((await gateway.replicas())[1]).toMatchObject({ shadow: { requests: 0.1 } });
  });

  test.for([
    ['without a name', [], 'CANDIDATE is missing'],
    ['without copies', ['s', '--shadow', '0%'], "option '--shadow' needs per cent such as 10%"],
    ['with a share that is none', ['s', '--shadow', '110%'], "option '--shadow' needs per cent such as 10%"],
    ['with a report of another kind', ['s', '--report', 'a.pdf'], 'that ends with .md or .html'],
  ] as const)('refuses a command line %s', async ([, args, message]) => {
    const outcome = await invoke(['compare', ...args], TOKEN);

    expect(outcome).toMatchObject({ exitCode: 2 });
    expect(outcome.stderr).toContain(message);
  });
});

import { expect, test } from 'vitest';
import { openTab } from '../support/browser.ts';
import { startFakeReplica } from '../support/fake-replica.ts';
import { ADMIN_TOKEN, startGateway } from '../support/start-gateway.ts';

const READ_TOKEN = 'test-read-token-0001';

test('the page shows everything with a read-only token, and offers no drain', async (context) => {
  await using replica = await startFakeReplica({ name: 'vllm-a' });
  await using gateway = await startGateway({ replicas: [replica], readToken: READ_TOKEN });
  const { page } = await openTab(context);
  const signIn = async (token: string) => {
    await page.getByLabel('Admin token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
  };
  await page.goto(gateway.adminUrl);
  await signIn(READ_TOKEN);
  await page.getByText('Live, read-only', { exact: true }).waitFor();
  await page.getByText('vllm-a').first().waitFor();
  expect(await page.getByRole('button', { name: 'Drain vllm-a' }).count()).toBe(0);

  await page.getByRole('button', { name: 'Sign out' }).click();
  await signIn(ADMIN_TOKEN);
  await page.getByRole('button', { name: 'Drain vllm-a' }).waitFor();
});

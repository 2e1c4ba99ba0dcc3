import { describe, expect, type TestContext, test } from 'vitest';
import { drainButton, openSignedIn, pollFast, rowOf, signIn } from '#testkit/dashboard/page.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { findBarriers, useBrowser } from '#testkit/processes/browser.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

/** The page in front of a real gateway. What only concerns the page is tested with a scripted admin API. */

const openTab = useBrowser();

async function openDashboard(context: TestContext, { adminUrl }: StartedGateway) {
  const tab = await openTab(context);
  await pollFast(tab.page, adminUrl);
  await openSignedIn(tab.page, `${adminUrl}/`, ADMIN_TOKEN);
  return tab;
}

describe('signing in', () => {
  test('takes the token from a form, keeps it for the tab, and never puts it in the URL', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await using tab = await openTab(context);
    const { page } = tab;
    const url = `${gateway.adminUrl}/`;

    await signIn(page, url, 'wrong');
    await page.getByRole('alert').filter({ hasText: 'This token was rejected.' }).waitFor();
    await page.getByLabel('Token', { exact: true }).fill(ADMIN_TOKEN);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await rowOf(page, 'a').waitFor();
    expect(page.url()).toBe(url);
    await page.reload();
    await rowOf(page, 'a').waitFor();

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token', { exact: true }).waitFor();
    await page.reload();
    await page.getByLabel('Token', { exact: true }).waitFor();
    expect(tab.complaints.filter((text) => !text.includes('401'))).toEqual([]);
  });

  test('with a link needs no token; the link works once, and no part of it stays in the URL', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await using tab = await openTab(context);
    const { page } = tab;
    const answer = await gateway.admin('/admin/sign-in-links', { method: 'POST' });
    const { code } = (await answer.json()) as { code: string };
    const link = `${gateway.adminUrl}/#sign-in=${code}`;
    await page.goto(link);
    await rowOf(page, 'a').waitFor();
    expect(page.url()).toBe(`${gateway.adminUrl}/`);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token', { exact: true }).waitFor();
    await page.goto(link);
    await page.getByRole('alert').filter({ hasText: 'This link was used already' }).waitFor();
    expect(page.url()).toBe(`${gateway.adminUrl}/`);
    expect(await findBarriers(page)).toEqual([]);
  });

  test('to a gateway without a token shows that the admin API is off', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], adminToken: null });
    await using tab = await openTab(context);

    await signIn(tab.page, gateway.adminUrl, ADMIN_TOKEN);
    await tab.page.getByRole('heading', { name: 'The admin API is off' }).waitFor();
    expect(await findBarriers(tab.page)).toEqual([]);
  });
});

test('an outage of the gateway is shown, with the time of the data', async (context) => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  await using tab = await openDashboard(context, gateway);
  await gateway.close();
  await tab.page.getByText('Reconnecting').waitFor();
  await tab.page.getByRole('button', { name: 'Try now' }).click();
  await tab.page.getByText(/The data shown is from \d\d:\d\d:\d\d/).waitFor();
});

test('a read-only token shows everything and offers no drain', async (context) => {
  const readToken = 'test-read-token-0001';
  await using replica = await startFakeReplica({ name: 'vllm-a' });
  await using gateway = await startGateway({ replicas: [replica], readToken });
  const { page } = await openTab(context);
  await signIn(page, gateway.adminUrl, readToken);
  await page.getByText('Live, read-only', { exact: true }).waitFor();
  await rowOf(page, 'vllm-a').waitFor();
  expect(await drainButton(page, 'vllm-a').count()).toBe(0);

  await page.getByRole('button', { name: 'Sign out' }).click();
  await signIn(page, gateway.adminUrl, ADMIN_TOKEN);
  await page.getByText('Live', { exact: true }).waitFor();
  await drainButton(page, 'vllm-a').waitFor();
});

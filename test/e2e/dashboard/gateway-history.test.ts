import { readFile } from 'node:fs/promises';
import { expect, type TestContext, test } from 'vitest';
import { dialogOf, pollFast, signIn } from '#testkit/dashboard/page.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { useBrowser } from '#testkit/processes/browser.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

/** The page in front of a real gateway with a history, as somebody sees it whose token only reads. */

const openTab = useBrowser();
const READ_TOKEN = 'test-read-token-0001';

async function openAsReader(context: TestContext, { adminUrl }: StartedGateway) {
  const tab = await openTab(context);
  context.onTestFinished(() => tab[Symbol.asyncDispose]());
  await pollFast(tab.page, adminUrl);
  await signIn(tab.page, `${adminUrl}/`, READ_TOKEN);
  await tab.page.getByText('Live, read-only', { exact: true }).waitFor();
  return tab;
}

async function startWithPast(context: TestContext): Promise<StartedGateway> {
  const replica = await startFakeReplica({ name: 'a' });
  context.onTestFinished(() => replica[Symbol.asyncDispose]());
  const options = { replicas: [replica], readToken: READ_TOKEN, config: { history: {} } };
  const gateway = await startGateway(options);
  context.onTestFinished(() => gateway[Symbol.asyncDispose]());
  for (const [at, tenant] of ['acme', 'acme', 'initech'].entries()) {
    const headers = { 'X-Tenant': tenant, 'X-Request-Id': `own-${at}` };
    await (await gateway.chat({}, { headers })).text();
  }
  await gateway.waitForRecords(3);
  return gateway;
}

test('an operator finds who used how much, what happened, and what became of a request', async (context) => {
  const gateway = await startWithPast(context);
  const { page, complaints } = await openAsReader(context, gateway);
  await gateway.admin('/admin/replicas/a/drain?reason=driver%20update', { method: 'POST' });
  await gateway.admin('/admin/replicas/a/undrain', { method: 'POST' });

  const timeline = page.getByRole('region', { name: 'What happened' });
  await timeline.getByRole('button', { name: /^a drained \(driver update, by admin\)/ }).waitFor();
  await page.getByRole('button', { name: '1 hour', exact: true }).click();
  await page.locator('#traffic-caption').getByText('the last hour; the history begins at').waitFor();
  await page.locator('.tile').first().getByText('3 requests').waitFor();

  await page.getByRole('button', { name: 'Usage', exact: true }).click();
  const usage = page.getByRole('region', { name: /^Usage/ });
  await page.getByLabel('Span').selectOption('The last 24 hours');
  await usage.getByRole('row', { name: /^acme 2 / }).waitFor();
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save CSV' }).click();
  const csv = await readFile(await (await saved).path(), 'utf8');
  expect(csv).toMatch(/^start,tenant,other,requests,.*\r\n[^\r]*,acme,false,2,/);

  await page.getByRole('navigation').getByRole('button', { name: 'Requests' }).click();
  await page.getByLabel('Find a request by its id').fill('own-1');
  await page.keyboard.press('Enter');
  await dialogOf(page).getByText('own-1').waitFor();
  await dialogOf(page).getByText('Too few requests of this model and endpoint').waitFor();
  await page.keyboard.press('Escape');
  expect(complaints).toEqual([]);

  await page.getByLabel('Find a request by its id').fill('of-elsewhere');
  await page.keyboard.press('Enter');
  await page.getByText('a request of another gateway is in the history of that one').waitFor();
});

test('a reload that switches the history off is seen, with how to switch it on', async (context) => {
  const gateway = await startWithPast(context);
  const { page, complaints } = await openAsReader(context, gateway);
  await page.getByRole('button', { name: 'Usage', exact: true }).click();
  gateway.writeConfig({ config: { history: 'off' } });
  expect((await gateway.reload()).status).toBe(200);
  await page.locator('#usage-notes').getByText('remove `history: off` from the configuration').waitFor();
  gateway.writeConfig({ config: { history: {} } });
  expect((await gateway.reload()).status).toBe(200);
  await page
    .getByRole('region', { name: /^Usage/ })
    .getByRole('row', { name: /^acme 2 / })
    .waitFor();
  // A call may have been under way when the history went off.
  expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
});

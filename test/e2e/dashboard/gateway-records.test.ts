import { describe, expect, type TestContext, test } from 'vitest';
import { dialogOf, openSignedIn, pollFast, recordRows } from '#testkit/dashboard/page.ts';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { answerJson, startFakeReplica } from '#testkit/fake-replica.ts';
import { useBrowser } from '#testkit/processes/browser.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

/** The page in front of a real gateway. What only concerns the page is tested with a scripted admin API. */

const openTab = useBrowser();

async function openDashboard(context: TestContext, { adminUrl }: StartedGateway) {
  const tab = await openTab(context);
  await pollFast(tab.page, adminUrl);
  await openSignedIn(tab.page, `${adminUrl}/`, ADMIN_TOKEN);
  return tab;
}

describe('the records of a gateway', () => {
  test('show names as text, even if a client sends markup', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [{ ...replica, models: ['*'] }] });
    const hostile = '<img src=x onerror="document.title=1"><b>m</b>';
    await gateway.chat({ model: hostile }, { headers: { 'X-Tenant': hostile } });
    await gateway.waitForRecords(1);
    await using tab = await openDashboard(context, gateway);

    await recordRows(tab.page).getByTitle(hostile).first().waitFor();
    await tab.page.locator('#models').getByTitle(hostile).waitFor();
    await tab.page.locator('#tenants').getByTitle(hostile).waitFor();
    expect(await tab.page.locator('#overview img, #overview b').count()).toBe(0);
    expect(await tab.page.title()).toContain('Spangate');
    expect(tab.complaints).toEqual([]);
  });

  test('that the collector does not take are counted, and its recovery is shown', async (context) => {
    await using replica = await startFakeReplica();
    const collector = await startFakeCollector();
    context.onTestFinished(() => collector.close());
    collector.answerAlways({ status: 503 });
    await using gateway = await startGateway({ replicas: [replica], collector });
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;
    await page.getByText('Nothing to send yet').waitFor();

    await gateway.chat();
    await page.locator('#export').getByText('Export calls fail').waitFor();
    await page
      .locator('#export')
      .filter({ hasText: /Queue\s*1\s*of 16,384 records/ })
      .waitFor();
    collector.answerAlways({ status: 200 });
    await page.getByText('Collector is accepting records').waitFor();
  });

  test('of failures have a list and a reason of their own', async (context) => {
    await using a = await startFakeReplica({
      name: 'a',
      script: answerJson({ error: { message: 'no' } }, { status: 500 }),
    });
    await using gateway = await startGateway({ replicas: [a] });
    await gateway.chat();
    await gateway.waitForRecords(1);
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;

    await page.locator('#reasons').getByText('500').waitFor();
    await page.getByRole('button', { name: 'Failures', exact: true }).last().click();
    await recordRows(page).getByText('500').waitFor();
    await recordRows(page).getByRole('button').click();
    await dialogOf(page).getByRole('heading', { name: 'Request 500' }).waitFor();
  });
});

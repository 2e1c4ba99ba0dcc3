import { describe, expect, type TestContext, test } from 'vitest';
import { makeOverview } from '#testkit/dashboard/made-overview.ts';
import { openScripted } from '#testkit/dashboard/open-scripted.ts';
import { openSignedIn, POLL_INTERVAL_MS } from '#testkit/dashboard/page.ts';
import { fiftyReplicas, troubledFleet } from '#testkit/dashboard/scenes.ts';
import { startScriptedDashboard, TOKEN } from '#testkit/dashboard/scripted-dashboard.ts';
import { findBarriers, type OpenTab, useBrowser } from '#testkit/processes/browser.ts';
import type { Overview } from '../../../src/admin/dashboard/overview.ts';

const openTab = useBrowser();

const openDashboard = (context: TestContext, overview: Overview, options: Parameters<OpenTab>[1] = {}) =>
  openScripted(openTab, context, overview, options);

describe('updates', () => {
  test('move nothing when only values change', async (context) => {
    const { page, dashboard } = await openDashboard(context, troubledFleet());
    const place = () =>
      page.locator('#records-section').evaluate((section) => section.getBoundingClientRect().top);
    const before = await place();
    const next = troubledFleet();
    dashboard.show({ ...next, stats: { ...next.stats, recorded: 31_415 } });
    await page.locator('#export').getByText('31,415').waitFor();
    expect(await place()).toBe(before);
  });

  test('are rare while the tab is hidden, and come at once when it is shown', async (context) => {
    const dashboard = await startScriptedDashboard(makeOverview());
    context.onTestFinished(() => dashboard[Symbol.asyncDispose]());
    await using tab = await openTab(context);
    const { page } = tab;
    let polls = 0;
    page.on('request', (request) => {
      if (request.url().includes('/admin/overview')) polls += 1;
    });
    // The page's timers run only when the test says so.
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 1_000);
    await openSignedIn(page, dashboard.url, TOKEN);
    const pretend = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`);

    await pretend(true);
    await page.clock.runFor(29 * POLL_INTERVAL_MS);
    expect(polls).toBe(1);
    const { stats } = makeOverview();
    dashboard.show(makeOverview({ stats: { ...stats, recorded: 31_415 } }));
    await page.clock.runFor(POLL_INTERVAL_MS);
    await page.locator('#export').getByText('31,415').waitFor();
    dashboard.show(makeOverview({ stats: { ...stats, recorded: 31_416 } }));
    await pretend(false);
    await page.locator('#export').getByText('31,416').waitFor();
    expect(polls).toBe(3);
  });

  test('that fail are told, the data stays, and the page recovers by itself', async (context) => {
    const { page } = await openDashboard(context, makeOverview());
    await page.route('**/admin/overview*', (route) => route.abort());
    await page.getByRole('alert').filter({ hasText: 'The gateway does not answer.' }).waitFor();
    await page.getByText('Nothing is wrong').waitFor({ state: 'hidden' });
    expect(await page.title()).toBe('⚠ gw-a · Spangate');
    await page.locator('tr[data-name="a"]').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await page.unroute('**/admin/overview*');
    await page.getByText('Live', { exact: true }).waitFor();
  });
});

test('the header says which gateway this is', async (context) => {
  const { page } = await openDashboard(context, makeOverview());
  await page.getByRole('banner').getByText('gw-a').waitFor();
  await page.getByText(/^edge-1 · version\s0\.1\.0 · up\s3\sh · config\sof\s\d\d:\d\d:\d\d$/).waitFor();
});

test("a fleet's page says that its figures are those of one gateway", async (context) => {
  const { page, dashboard } = await openDashboard(
    context,
    makeOverview({ other_gateways: ['gw-b', 'gw-c'] }),
  );
  await page.getByText('are those of gw-a alone: gw-b, gw-c of the same fleet have their own.').waitFor();
  dashboard.show(makeOverview());
  await page.locator('#fleet-note').waitFor({ state: 'hidden' });
});

test('capacity and traffic are shown by worker, limit, model and tenant', async (context) => {
  const { page } = await openDashboard(context, fiftyReplicas(), { viewport: { width: 1440, height: 900 } });
  const capacity = page.getByRole('region', { name: /^Capacity/ });
  await capacity.getByText('of 8, mean').waitFor();
  await capacity.getByText('2,180').waitFor();
  await capacity.getByText('46.1 MiB').waitFor();
  expect(await capacity.locator('svg title').allTextContents()).toContain('Worker 8: 53 %');
  await page.locator('#tenants').getByText('all others').last().waitFor();
  await page.locator('#models').getByRole('button', { name: 'BAAI/bge-m3' }).click();
  await expect.poll(() => new URL(page.url()).hash).toBe('#model=BAAI%2Fbge-m3');
});

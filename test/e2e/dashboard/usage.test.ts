import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { describe, expect, type TestContext, test } from 'vitest';
import { forgetAll, makeRow, makeSums, makeUsage } from '#testkit/dashboard/made-history.ts';
import { makeOverview, secondsAgo } from '#testkit/dashboard/made-overview.ts';
import { openScripted } from '#testkit/dashboard/open-scripted.ts';
import type { ScriptedHistory } from '#testkit/dashboard/scripted-dashboard.ts';
import { findBarriers, type OpenTab, useBrowser } from '#testkit/processes/browser.ts';

const openTab = useBrowser();

const HOSTILE = '=<img src=x onerror=alert(1)>\u202e';
const LONG = `${'very-long-name-of-a-tenant-'.repeat(9)}end`;

const remember: ScriptedHistory = (path, query) => {
  if (path !== 'usage' || query.get('limit') !== '1000') return forgetAll(path, query);
  const by = (query.get('by') ?? '').split(',') as ('tenant' | 'model')[];
  if (query.get('tenant') === 'nobody') {
    const note = 'No request of this tenant is in what this gateway keeps: check the name.';
    return makeUsage({ rows: [], total: makeSums({ requests: 0, costs: {} }), by, note });
  }
  const rows = [
    makeRow({ tenant: 'acme', model: 'm' }, { requests: 900, costs: { EUR: 12.5 } }),
    makeRow({ tenant: HOSTILE, model: 'm' }, { requests: 500, errors: 100, costs: { EUR: 40 } }),
    makeRow({ tenant: LONG, model: 'm' }, { requests: 300, costs: { EUR: 1 } }),
    makeRow({ tenant: null, model: null }, { requests: 9_000, other: true, costs: { EUR: 99 } }),
  ];
  const gaps = [{ from: secondsAgo(90), until: secondsAgo(60), records: null, reason: 'killed' as const }];
  const total = makeSums({ requests: 10_700, costs: { EUR: 152.5 } });
  return makeUsage({ rows, total, by, gaps });
};

async function openUsage(context: TestContext, options: Parameters<OpenTab>[1] & { fragment?: string } = {}) {
  return await openScripted(openTab, context, makeOverview(), {
    history: remember,
    fragment: '#view=usage',
    ...options,
  });
}

const usageOf = (page: Page) => page.getByRole('region', { name: /^Usage/ });
const namesOf = (page: Page) =>
  usageOf(page)
    .locator('tbody tr th')
    .evaluateAll((cells) => cells.map((cell) => cell.textContent));

describe('usage', () => {
  test('is a view of its own, by tenant, with its span, its zone and what is missing', async (context) => {
    const { page, complaints } = await openScripted(openTab, context, makeOverview());
    await page.getByRole('button', { name: 'Usage', exact: true }).click();
    expect(new URL(page.url()).hash).toBe('#view=usage');
    await usageOf(page).getByText('No request arrived in this span.').waitFor();
    expect(await page.locator('#replicas-section').isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Requests', exact: true }).click();
    await page.locator('#records-section').waitFor();
    await page.goBack();
    await usageOf(page).waitFor();
    expect(complaints).toEqual([]);
  });

  test('has a row for each tenant, their sum, and says what is missing', async (context) => {
    const { page, complaints } = await openUsage(context);
    await usageOf(page)
      .getByRole('row', { name: /^acme 900 / })
      .waitFor();
    expect(await usageOf(page).locator('tfoot').innerText()).toMatch(/Total\s+10,700/);
    await usageOf(page).getByText('(Europe/Berlin), by whole minutes').waitFor();
    await usageOf(page).getByText('at most its last second is missing').waitFor();
    await usageOf(page).getByText('This gateway has sums by hour since').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test('is sorted by a press on a head, all others last', async (context) => {
    const { page } = await openUsage(context);
    await usageOf(page).getByRole('row', { name: /^acme/ }).waitFor();
    expect(await namesOf(page)).toEqual(['acme', HOSTILE, LONG, 'all others']);
    await usageOf(page).getByRole('button', { name: 'Cost EUR' }).click();
    expect(await namesOf(page)).toEqual([HOSTILE, 'acme', LONG, 'all others']);
    const head = usageOf(page).getByRole('columnheader', { name: 'Cost EUR' });
    expect(await head.getAttribute('aria-sort')).toBe('descending');
    expect(await page.locator(':focus').innerText()).toBe('Cost EUR');
  });

  test('of one tenant is reached by its name, and is in the URL', async (context) => {
    const { page, dashboard } = await openUsage(context);
    await usageOf(page).getByRole('button', { name: 'acme', exact: true }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe('#view=usage&by=model&of=tenant&named=acme');
    await expect.poll(() => dashboard.asked.some((call) => call.includes('by=model&tenant=acme'))).toBe(true);
  });

  test('of an unknown tenant says that nobody has had this name', async (context) => {
    const { page } = await openUsage(context);
    await page.getByLabel('Only requests of').selectOption('Only this tenant');
    await page.getByLabel('Its name').fill('nobody');
    await usageOf(page).getByText('No request of this tenant is in what this gateway keeps').waitFor();
    expect(await page.getByRole('button', { name: 'Save CSV' }).isDisabled()).toBe(true);
  });

  test('of chosen days is by day, in the zone of the reader', async (context) => {
    const { page, dashboard } = await openUsage(context, { timezoneId: 'America/New_York' });
    await page.getByLabel('Span').selectOption('These days');
    await page.getByLabel('from').fill('2026-11-01');
    await page.getByLabel('to', { exact: true }).fill('2026-11-03');
    await page.getByLabel('Divided by time').selectOption('By day');
    const wanted = 'since=2026-11-01&until=2026-11-04&by=tenant&step=1d&time_zone=America%2FNew_York';
    await expect.poll(() => dashboard.asked.some((call) => call.includes(wanted))).toBe(true);
    await usageOf(page).getByRole('columnheader', { name: 'When' }).waitFor();
  });

  test('is saved as a file in which no name is a formula', async (context) => {
    const { page, complaints } = await openUsage(context);
    await usageOf(page).getByRole('row', { name: /^acme/ }).waitFor();
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save CSV' }).click();
    const download = await saved;
    expect(download.suggestedFilename()).toMatch(/^usage-tenant-2026-11-21T\d{4}-2026-11-21T\d{4}\.csv$/);
    const lines = (await readFile(await download.path(), 'utf8')).split('\r\n');
    expect(lines[0]).toContain('start,tenant,other,requests');
    expect(lines[2]).toContain(`'${HOSTILE}`);
    expect(lines).toHaveLength(6);
    expect(complaints).toEqual([]);
  });

  test('that the history cannot tell says why, and comes when it can', async (context) => {
    const { page, dashboard } = await openScripted(openTab, context, makeOverview());
    dashboard.remember(() => ({ code: 'history_unavailable', message: 'It does not answer: too slow.' }));
    await page.getByRole('button', { name: 'Usage', exact: true }).click();
    await usageOf(page).getByText('It does not answer: too slow.').waitFor();
    dashboard.remember(remember);
    await usageOf(page).getByRole('row', { name: /^acme/ }).waitFor();
  });
});

test('without a history usage says how to switch it on', async (context) => {
  const overview = makeOverview({ keeps_history: false });
  const { page, dashboard, complaints } = await openScripted(openTab, context, overview, {
    fragment: '#view=usage',
  });
  await usageOf(page).getByText('remove `history: off` from the configuration').waitFor();
  expect(dashboard.asked).toEqual([]);
  expect(await findBarriers(page)).toEqual([]);
  expect(complaints).toEqual([]);
});

test.for([
  ['light', { viewport: { width: 1440, height: 900 }, colorScheme: 'light' }],
  ['dark, on a tablet', { viewport: { width: 820, height: 900 }, colorScheme: 'dark' }],
  ['on a phone', { viewport: { width: 390, height: 844 }, colorScheme: 'light' }],
] as const)('usage has no barriers, and no name makes the page wide: %s', async ([, options], context) => {
  const { page, complaints } = await openUsage(context, options);
  await usageOf(page).getByRole('row', { name: /^acme/ }).waitFor();
  expect(await findBarriers(page)).toEqual([]);
  const sideways = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  expect(await page.evaluate(sideways)).toBe(0);
  expect(await page.locator('img[src="x"]').count()).toBe(0);
  expect(complaints).toEqual([]);
});

import type { Page } from 'playwright-core';
import { describe, expect, type TestContext, test } from 'vitest';
import { forgetAll, makeFound, makeSums, makeUsage } from '#testkit/dashboard/made-history.ts';
import { makeOverview, makeRecord, type Overview } from '#testkit/dashboard/made-overview.ts';
import { openScripted } from '#testkit/dashboard/open-scripted.ts';
import { dialogOf, recordRows } from '#testkit/dashboard/page.ts';
import type { ScriptedHistory } from '#testkit/dashboard/scripted-dashboard.ts';
import { findBarriers, type OpenTab, useBrowser } from '#testkit/processes/browser.ts';

const openTab = useBrowser();

const HOSTILE = '<img src=x onerror=alert(1)>';
const SLOW = makeRecord(7, {
  queue_ms: 2_100,
  ttft_ms: 2_300,
  e2e_ms: 3_900,
  attempts: 2,
  client_request_id: 'client-1',
  failed_attempts: [
    { replica: HOSTILE, failure: 'not_connected', status: null, duration_ms: 40, after_ms: 2_150 },
  ],
});
const GONE =
  'No record with this id is in the history of this gateway. gw-a has the records since 2026-11-01T00:00:00.000Z; a request of another gateway is in the history of that one.';

const remember: ScriptedHistory = (path, query) => {
  if (path === 'records/trace-of-two') return makeFound([SLOW, makeRecord(8)]);
  if (path === 'records/client-1' || path === `records/${SLOW.request_id}`) return makeFound([SLOW]);
  if (path.startsWith('records/')) return { code: 'record_not_found', message: GONE };
  if (path === 'usage') return makeUsage({ total: makeSums() });
  return forgetAll(path, query);
};

async function openDashboard(
  context: TestContext,
  overview: Overview = makeOverview(),
  options: Parameters<OpenTab>[1] & { readonly fragment?: string } = {},
) {
  return await openScripted(openTab, context, overview, { history: remember, ...options });
}

async function find(page: Page, id: string) {
  await page.getByLabel('Find a request by its id').fill(id);
  await page.keyboard.press('Enter');
}
const found = (page: Page) => page.locator('#found-note');

describe('a search by an id', () => {
  test("opens the request with the client's own id, from the history", async (context) => {
    const { page, dashboard, complaints } = await openDashboard(context);
    await find(page, ' client-1 ');
    await dialogOf(page).getByText(SLOW.request_id).waitFor();
    expect(dashboard.asked).toContain('records/client-1?');
    expect(new URL(page.url()).hash).toBe('#find=client-1&record=request-7');
    await page.keyboard.press('Escape');
    expect(await recordRows(page).count()).toBe(1);
    await page.getByRole('button', { name: 'Latest', exact: true }).click();
    await page.getByText('No request has ended yet.').waitFor();
    expect(await page.getByLabel('Find a request by its id').inputValue()).toBe('');
    expect(complaints).toEqual([]);
  });

  test('lists all requests of a trace', async (context) => {
    const { page } = await openDashboard(context);
    await find(page, 'trace-of-two');
    await page.getByText('2 requests with this id').waitFor();
    expect(await recordRows(page).count()).toBe(2);
  });

  test('says that it is not there, since when this gateway knows, and of other gateways', async (context) => {
    const { page } = await openDashboard(context);
    await find(page, 'a/b?c of elsewhere');
    await found(page).getByText('a request of another gateway is in the history of that one').waitFor();
    expect(await findBarriers(page)).toEqual([]);
  });

  test('without a history looks among the latest, and says that older ones are not known', async (context) => {
    const overview = makeOverview({ keeps_history: false, records: [SLOW], last_record: 7 });
    const { page, dashboard } = await openDashboard(context, overview);
    await find(page, 'client-1');
    await dialogOf(page).getByText(SLOW.request_id).waitFor();
    await page.keyboard.press('Escape');
    await find(page, 'long-gone');
    await found(page).getByText('The history is off, so older ones are not known').waitFor();
    expect(dashboard.asked).toEqual([]);
  });
});

describe('the details of a request', () => {
  test('say why it was slow, with its parts, and what is usual', async (context) => {
    const { page, complaints } = await openDashboard(
      context,
      makeOverview({ records: [SLOW], last_record: 7 }),
    );
    await recordRows(page).first().getByRole('button').click();
    const dialog = dialogOf(page);
    await dialog.getByText('It waited 2.10 s for a free replica.').waitFor();
    await dialog.getByText('240 like requests in its hour: p50 1.24 s, p95 3.48 s.').waitFor();
    const parts = await dialog.getByRole('list', { name: 'Its parts' }).getByRole('listitem').allInnerTexts();
    expect(parts.map((text) => text.replace(/\s+/g, ' '))).toEqual([
      'In the gateway 10 ms',
      'Waited for a free replica 2.10 s',
      `${HOSTILE} could not be connected to 40 ms`,
      'Until the first token of a 150 ms',
      'Stream 1.60 s',
    ]);
    expect(await dialog.locator('.phase').count()).toBe(5);
    expect(await page.locator('img[src="x"]').count()).toBe(0);
    expect(await findBarriers(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test('break no word of a failed attempt, also beside a long name on a phone', async (context) => {
    const attempt = { failure: 'status_retried', status: 500, duration_ms: 40, after_ms: 0 };
    const record = makeRecord(7, { failed_attempts: [{ ...attempt, replica: 'long-name-'.repeat(12) }] });
    const { page } = await openDashboard(context, makeOverview({ records: [record], last_record: 7 }), {
      viewport: { width: 390, height: 844 },
    });
    await recordRows(page).first().getByRole('button').click();
    const failure = dialogOf(page).getByRole('cell', { name: 'status_retried' });
    await failure.waitFor();
    const toLines =
      'cell => { const range = document.createRange(); range.selectNodeContents(cell); return range.getClientRects().length; }';
    const lines = await page.evaluate(`(${toLines})(document.querySelector('.attempts td:nth-child(2)'))`);
    expect(lines).toBe(1);
    expect(await dialogOf(page).evaluate((all) => all.scrollWidth - all.clientWidth)).toBe(0);
  });

  test('come from the history if the page has the request no more', async (context) => {
    const { page } = await openDashboard(context, makeOverview(), { fragment: '#record=request-7' });
    await dialogOf(page).getByText('It waited 2.10 s for a free replica.').waitFor();
  });

  test('that are not in the history say what the gateway knows', async (context) => {
    const { page } = await openDashboard(context, makeOverview(), { fragment: '#record=long-gone' });
    await dialogOf(page).getByText('gw-a has the records since').waitFor();
  });

  test('say that there is too little to compare with', async (context) => {
    const { page, dashboard } = await openDashboard(
      context,
      makeOverview({ records: [SLOW], last_record: 7 }),
    );
    dashboard.remember((path, query) =>
      path === 'usage' ? makeUsage({ total: makeSums({ requests: 1 }) }) : forgetAll(path, query),
    );
    await recordRows(page).first().getByRole('button').click();
    await dialogOf(page).getByText('Too few requests of this model and endpoint').waitFor();
  });

  test.for([
    ['in the dark', { viewport: { width: 1440, height: 900 }, colorScheme: 'dark' }],
    ['on a phone', { viewport: { width: 390, height: 844 }, colorScheme: 'light' }],
  ] as const)('have no barriers: %s', async ([, options], context) => {
    const records = { records: [SLOW], last_record: 7 };
    const { page } = await openDashboard(context, makeOverview(records), {
      fragment: '#record=request-7',
      ...options,
    });
    await dialogOf(page).getByText('240 like requests').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    const sideways =
      'document.querySelector("#details").scrollWidth - document.querySelector("#details").clientWidth';
    expect(await page.evaluate(sideways)).toBe(0);
  });
});

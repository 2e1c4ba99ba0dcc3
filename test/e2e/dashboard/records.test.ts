import type { Page } from 'playwright-core';
import { describe, expect, type TestContext, test } from 'vitest';
import { makeOverview, makeRecord } from '#testkit/dashboard/made-overview.ts';
import { openScripted } from '#testkit/dashboard/open-scripted.ts';
import { dialogOf, recordRows } from '#testkit/dashboard/page.ts';
import { findBarriers, useBrowser } from '#testkit/processes/browser.ts';
import type { Overview } from '../../../src/admin/dashboard/overview.ts';

const openTab = useBrowser();

const openDashboard = (context: TestContext, overview: Overview, fragment = '') =>
  openScripted(openTab, context, overview, { fragment });

const failed = makeRecord(2, {
  replica: 'b',
  model: 'n',
  status: 502,
  error_type: 'upstream_failed',
  attempts: 2,
  failed_attempts: [
    { replica: 'c', failure: 'not_connected', status: null, duration_ms: 1.25, after_ms: 1.5 },
  ],
});
const { replica: _replica, tenant: _tenant, ...nameless } = makeRecord(3, { model: 'nobody', status: 404 });
const notFound = { ...nameless, error_type: 'model_not_found' };
const OVERVIEW = makeOverview({
  trace_url_template: 'http://traces.example/trace/{trace_id}',
  records: [notFound, failed, makeRecord(1)],
  failures: [notFound, failed],
  failure_reasons: [{ code: 'upstream_failed', status: 502, replica: 'b', model: 'n', count: 1 }],
  last_record: 3,
});

const statusesOf = (page: Page) =>
  recordRows(page)
    .locator('.status')
    .evaluateAll((all) => all.map((status) => status.textContent?.slice(0, 3)));
const select = (page: Page, label: string, option: string) =>
  page.getByLabel(label, { exact: true }).selectOption(option);
const toFragment = (page: Page) => new URL(page.url()).hash;

describe('the list of requests', () => {
  test('is filtered, and the filters survive a reload, the back button and the forward button', async (context) => {
    const { page, complaints } = await openDashboard(context, OVERVIEW);
    expect(await statusesOf(page)).toEqual(['404', '502', '200']);
    await select(page, 'Tenant', 'acme');
    expect(await statusesOf(page)).toEqual(['502', '200']);
    await select(page, 'Status', 'Success');
    expect(await statusesOf(page)).toEqual(['200']);
    expect(toFragment(page)).toBe('#tenant=acme&status=success');

    await page.reload();
    await recordRows(page).first().waitFor();
    expect(await statusesOf(page)).toEqual(['200']);
    await page.goBack();
    await expect.poll(() => statusesOf(page)).toEqual(['502', '200']);
    await page.goForward();
    await expect.poll(() => statusesOf(page)).toEqual(['200']);

    await page.getByRole('button', { name: 'Clear filters' }).click();
    expect(toFragment(page)).toBe('');
    await select(page, 'Replica', 'Without replica');
    expect(await statusesOf(page)).toEqual(['404']);
    await select(page, 'Error', 'upstream_failed');
    await page.getByText('No request matches these filters.').waitFor();
    expect(complaints).toEqual([]);
  });

  test('has its filters before the first request', async (context) => {
    const { page } = await openDashboard(context, makeOverview());
    await page.getByText('No request has ended yet').waitFor();
    const chosen = page.locator('#filters select option:checked');
    const texts = ['Any replica', 'Any model', 'Any tenant', 'Any error', 'Any status'];
    expect(await chosen.allInnerTexts()).toEqual(texts);
  });

  test('does not change while it is paused', async (context) => {
    const { page, dashboard } = await openDashboard(context, makeOverview());
    await page.getByRole('button', { name: 'Pause' }).click();
    const { stats } = OVERVIEW;
    dashboard.show({ ...OVERVIEW, stats: { ...stats, recorded: 24_003 } });
    await page.locator('#export').getByText('24,003').waitFor();
    expect(await recordRows(page).count()).toBe(0);
    await page.getByRole('button', { name: 'Pause' }).click();
    await recordRows(page).nth(2).waitFor();
  });
});

describe('failures', () => {
  test('are reached from their reason, with their code', async (context) => {
    const { page } = await openDashboard(context, OVERVIEW);
    await page.locator('#reasons').getByRole('button', { name: 'upstream_failed' }).click();
    expect(await statusesOf(page)).toEqual(['502']);
    expect(toFragment(page)).toBe('#list=failures&replica=b&model=n&error_type=upstream_failed');
    await page.getByRole('button', { name: 'Clear filters' }).click();
    expect(await statusesOf(page)).toEqual(['404', '502']);
  });

  test('are kept by kind: many answers 4xx do not hide the errors before them', async (context) => {
    const many = Array.from({ length: 200 }, (_, at) => makeRecord(500 - at, { status: 404 }));
    const { page, dashboard } = await openDashboard(context, OVERVIEW, '#list=failures');
    dashboard.show({ ...OVERVIEW, records: [], failures: many, last_record: 500 });
    await recordRows(page).nth(200).waitFor();
    expect(new Set(await statusesOf(page))).toEqual(new Set(['404', '502']));
  });
});

describe('the details of a request', () => {
  test('tell when it arrived in the zone of the reader, as the list does, and as logs do', async (context) => {
    const opened = await openScripted(openTab, context, OVERVIEW, { timezoneId: 'Asia/Tokyo' });
    await recordRows(opened.page).first().getByRole('button').click();
    const arrived = dialogOf(opened.page).locator('dl div', { hasText: 'Arrived' }).locator('dd');
    expect(await arrived.textContent()).toMatch(/21:0\d:\d\d \(2026-11-21T12:0\d:\d\d\.000Z\)$/);
  });

  test('have its failed attempts and its trace, and a URL of their own', async (context) => {
    const { page, complaints } = await openDashboard(context, OVERVIEW);
    await recordRows(page).nth(1).getByRole('button').click();
    const dialog = dialogOf(page);
    await dialog.getByRole('heading', { name: 'Request 502' }).waitFor();
    await dialog.getByRole('row', { name: 'c not_connected – 1.3 ms' }).waitFor();
    const link = dialog.getByRole('link', { name: `Trace ${failed.trace_id}` });
    expect(await link.getAttribute('href')).toBe(`http://traces.example/trace/${failed.trace_id}`);
    expect(await link.getAttribute('rel')).toContain('noopener');
    expect(await findBarriers(page)).toEqual([]);
    expect(toFragment(page)).toBe('#record=request-2');

    await page.reload();
    await dialog.getByText('request-2').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await expect.poll(() => toFragment(page)).toBe('');
    await page.goBack();
    await dialog.waitFor();
    await page.goBack();
    await dialog.waitFor({ state: 'hidden' });
    expect(complaints).toEqual([]);
  });

  test('have units, and are shown from their beginning on a phone', async (context) => {
    const times = makeRecord(1, { gpu_seconds: 18.4841, tokens_per_second: 99.335, audio_seconds: 75 });
    const { page } = await openDashboard(context, makeOverview({ records: [times], last_record: 1 }));
    await page.setViewportSize({ width: 390, height: 400 });
    await recordRows(page).first().getByRole('button').click();
    const dialog = dialogOf(page);
    await dialog.getByText('18.5 s').waitFor();
    await dialog.getByText('99.3').waitFor();
    await dialog.getByText('1 min 15 s').waitFor();
    expect(await dialog.evaluate((element) => element.scrollTop)).toBe(0);
  });

  test('of a request that is not kept any more say so', async (context) => {
    const { page } = await openDashboard(context, { ...OVERVIEW, keeps_history: false }, '#record=long-gone');
    await dialogOf(page).getByText('The gateway does not keep this request any more.').waitFor();
  });
});

test('records that go to files are not said to go to a collector', async (context) => {
  const { page } = await openDashboard(context, makeOverview({ export_to: 'file' }));
  await page.locator('#export').getByText('Records are written to files').waitFor();
  expect(await page.locator('#export-section').textContent()).not.toContain('ollector');
});

test('a URL that somebody else wrote is only text', async (context) => {
  const hostile = '<img src=x onerror=alert(1)>';
  const fragment = `#search=${encodeURIComponent(hostile)}&sort=constructor&list=__proto__&model=${encodeURIComponent(hostile)}&status=valueOf`;
  const { page, complaints } = await openDashboard(context, OVERVIEW, fragment);
  await page.getByText('No request matches these filters.').waitFor();
  expect(await page.getByLabel('Search replicas').inputValue()).toBe(hostile);
  expect(await page.locator('#overview img').count()).toBe(0);
  expect(complaints).toEqual([]);
});

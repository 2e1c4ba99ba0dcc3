import type { Page } from 'playwright-core';
import { describe, expect, type TestContext, test } from 'vitest';
import {
  makeConditions,
  makeOverview,
  makeReplica,
  type Overview,
} from '#testkit/dashboard/made-overview.ts';
import { openScripted } from '#testkit/dashboard/open-scripted.ts';
import { replicaNames, rowOf } from '#testkit/dashboard/page.ts';
import { troubledEvening, troubledFleet } from '#testkit/dashboard/scenes.ts';
import { findBarriers, type OpenTab, useBrowser } from '#testkit/processes/browser.ts';

const openTab = useBrowser();

const openDashboard = (context: TestContext, overview: Overview, options: Parameters<OpenTab>[1] = {}) =>
  openScripted(openTab, context, overview, options);

type Finding = Parameters<typeof makeConditions>[0][number];

const unreachable = (subject: string, reason = 'connection refused'): Finding => ({
  id: 'replica_unreachable',
  subject,
  figures: { reason },
});
const withConditions = (...findings: Finding[]) => makeOverview({ conditions: makeConditions(findings) });

const chipsOf = (page: Page) => page.locator('#conditions button').allInnerTexts();
const dialogOf = (page: Page) => page.locator('#condition');
const focusedText = (page: Page) => page.evaluate('document.activeElement?.textContent');

describe('the line at the top', () => {
  test('shows on a phone what is wrong with a replica whose name is as long as names may be', async (context) => {
    const phone = { viewport: { width: 390, height: 844 } };
    const { page } = await openDashboard(
      context,
      withConditions(unreachable('long-name-'.repeat(13).slice(2))),
      phone,
    );
    const text = page.locator('#conditions .chip-text').first();
    await text.waitFor();
    expect(await text.evaluate((shown) => shown.scrollHeight - shown.clientHeight)).toBe(0);
  });

  test('has a chip for each condition of the overview, in its order, and a colour and a word for its severity', async (context) => {
    const { page, complaints } = await openDashboard(context, troubledFleet());
    expect(await chipsOf(page)).toEqual([
      expect.stringContaining('8 % of requests fail'),
      expect.stringContaining('embed-a does not answer: connection refused'),
      expect.stringContaining('llama-b fails 30 % of its attempts'),
      expect.stringContaining('qwen-a is loading its model'),
    ]);
    await page.getByRole('button', { name: 'Critical: 8 % of requests fail', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Notice: qwen-a is loading its model', exact: true }).waitFor();
    const colours = await page.evaluate<string[]>(
      "[...document.querySelectorAll('#conditions button')].map((chip) => getComputedStyle(chip).color)",
    );
    expect(new Set(colours).size).toBe(3);
    await page.getByRole('status').filter({ hasText: '1 critical, 2 warnings, 1 notice' }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('says that nothing is wrong, and since when if it has seen that', async (context) => {
    const { page, dashboard } = await openDashboard(context, makeOverview());
    await page.getByText('Nothing is wrong', { exact: true }).waitFor();
    dashboard.show(withConditions(unreachable('a')));
    await page.getByRole('button', { name: 'a does not answer' }).waitFor();
    dashboard.show(makeOverview());
    await page.getByText(/^Nothing is wrong since \d\d:\d\d:\d\d$/).waitFor();
    expect(await chipsOf(page)).toEqual([]);
  });

  test('makes no judgement of its own: figures alone are no condition', async (context) => {
    const { page } = await openDashboard(context, { ...troubledFleet(), conditions: [] });
    await page.getByText('Nothing is wrong', { exact: true }).waitFor();
    expect(await page.title()).toBe('gw-a · Spangate');
  });

  test('marks the tab, but for notices, and the mark goes with what it stands for', async (context) => {
    const { page, dashboard } = await openDashboard(context, withConditions(unreachable('a')));
    await expect.poll(() => page.title()).toBe('⚠ gw-a · Spangate');
    dashboard.show(withConditions({ id: 'config_not_loaded', subject: 'gateway.yaml', figures: {} }));
    await expect.poll(() => page.title()).toBe('gw-a · Spangate');
  });

  test('keeps the most severe if there are many, and leads to a list of all', async (context) => {
    const { page } = await openDashboard(context, troubledEvening());
    const chips = await chipsOf(page);
    expect(chips).toHaveLength(6);
    expect(chips.at(-1)).toBe('and 5 more');
    await page.getByRole('button', { name: 'and 5 more' }).click();
    const all = page.getByRole('dialog', { name: 'What is wrong now' });
    expect(await all.locator('.chip').count()).toBe(10);
    await all.getByRole('button', { name: 'Redis does not answer (ECONNREFUSED)' }).click();
    await dialogOf(page).getByText('Redis does not answer (ECONNREFUSED): drains and limits').waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => dialogOf(page).isVisible()).toBe(false);
    expect(await all.isVisible()).toBe(true);
    expect(await focusedText(page)).toContain('Redis does not answer');
    await page.setViewportSize({ width: 390, height: 844 });
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'and 7 more' }).waitFor();
  });

  test('shows a hostile name as text', async (context) => {
    const subject = '<img src=x onerror=alert(1)>\u202egnp.exe';
    const { page, complaints } = await openDashboard(
      context,
      withConditions(unreachable(subject, '<b>no</b>')),
    );
    const chip = page.getByRole('button', { name: '<img src=x onerror=alert(1)>' });
    await chip.click();
    expect(await page.locator('#condition-title').textContent()).toBe(
      `${subject} does not answer: <b>no</b>`,
    );
    expect(await page.locator('#condition img, #condition b, #conditions img').count()).toBe(0);
    expect(complaints).toEqual([]);
  });
});

describe('the dialog of a condition', () => {
  test('says what it means and what to do, with its figures, and goes to the row of its replica', async (context) => {
    const { page, complaints } = await openDashboard(context, troubledFleet());
    await page.getByLabel('Search replicas').fill('qwen');
    await page.getByRole('button', { name: 'embed-a does not answer' }).click();
    const dialog = page.getByRole('dialog', { name: 'embed-a does not answer: connection refused' });
    await dialog.getByText(/^since \d\d:\d\d:\d\d, for 3 min$/).waitFor();
    await dialog.getByText('The gateway skips it').waitFor();
    expect(await dialog.locator('#condition-remedy code').allInnerTexts()).toEqual([
      'gateway check --connect',
    ]);
    expect(await dialog.locator('dl').innerText()).toMatch(/^Reason\s+connection refused$/);
    expect(await findBarriers(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Show the replica' }).click();
    await expect.poll(() => dialog.isVisible()).toBe(false);
    await expect
      .poll(() => page.evaluate('document.activeElement?.getAttribute("data-name")'))
      .toBe('embed-a');
    expect(await replicaNames(page)).toHaveLength(8);
    expect(complaints).toEqual([]);
  });

  test('opens the group that hides the row', async (context) => {
    const { page } = await openDashboard(context, withConditions(unreachable('a')));
    await page.locator('.group-toggle').click();
    await expect.poll(() => rowOf(page, 'a').count()).toBe(0);
    await page.getByRole('button', { name: 'a does not answer' }).click();
    await page.getByRole('button', { name: 'Show the replica' }).click();
    await expect.poll(() => rowOf(page, 'a').isVisible()).toBe(true);
  });

  test('filters the requests of its tenant', async (context) => {
    const { page } = await openDashboard(context, troubledEvening());
    await page.getByRole('button', { name: 'acme-production is at its limit' }).click();
    await page.getByRole('button', { name: 'Show its requests' }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe('#list=failures&tenant=acme-production');
  });

  test('stays open while its figures change, and says when it is over', async (context) => {
    const silent = (count: number): Finding => ({
      id: 'replica_streams_silent',
      subject: 'a',
      figures: { silent: count, running: 20, oldest: 30 },
    });
    const { page, dashboard } = await openDashboard(context, withConditions(silent(3)));
    await page.getByRole('button', { name: '3 of 20 streams of a are silent' }).focus();
    await page.keyboard.press('Enter');
    const dialog = dialogOf(page);
    await dialog.getByText('3 of 20 streams').waitFor();
    dashboard.show(withConditions(silent(9)));
    await dialog.getByText('9 of 20 streams').waitFor();
    expect(await dialog.locator('dd').first().innerText()).toBe('9');
    dashboard.show(makeOverview());
    await dialog
      .getByRole('status')
      .filter({ hasText: /^It is over since \d\d:\d\d:\d\d\.$/ })
      .waitFor();
    await dialog.getByText('9 of 20 streams').waitFor();
    dashboard.show(withConditions(silent(2)));
    await dialog.getByText('2 of 20 streams').waitFor();
    expect(await page.locator('#condition-over').textContent()).toBe('');
    await page.keyboard.press('Escape');
    await expect.poll(() => dialog.isVisible()).toBe(false);
    // Its first button went with the condition, so the part of the page is focused.
    await expect.poll(() => page.evaluate('document.activeElement?.id')).toBe('conditions-section');
  });

  test('leads to the replicas although its own is gone', async (context) => {
    const overview = withConditions(unreachable('gone'));
    const { page } = await openDashboard(context, {
      ...overview,
      replicas: [makeReplica({ name: 'a' })],
    });
    await page.getByRole('button', { name: 'gone does not answer' }).click();
    await page.getByRole('button', { name: 'Show the replica' }).click();
    await expect.poll(() => dialogOf(page).isVisible()).toBe(false);
  });
});

test('the line and its dialogs have no barriers on a phone and in the dark', async (context) => {
  const { page } = await openDashboard(context, troubledEvening(), {
    viewport: { width: 390, height: 844 },
    colorScheme: 'dark',
  });
  expect(await findBarriers(page)).toEqual([]);
  expect(
    await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
  ).toBe(0);
  await page.getByRole('button', { name: 'and 7 more' }).click();
  expect(await findBarriers(page)).toEqual([]);
  await page.locator('#conditions-list .chip').first().click();
  expect(await findBarriers(page)).toEqual([]);
});

import type { Page } from 'playwright-core';
import { describe, expect, type TestContext, test } from 'vitest';
import {
  forgetAll,
  makeRow,
  makeSums,
  makeTimeline,
  makeUsage,
  type TimelineEvent,
  toSince,
} from '#testkit/dashboard/made-history.ts';
import { makeOverview, makeRecord, type Overview, secondsAgo } from '#testkit/dashboard/made-overview.ts';
import { openScripted } from '#testkit/dashboard/open-scripted.ts';
import { dialogOf } from '#testkit/dashboard/page.ts';
import type { ScriptedHistory } from '#testkit/dashboard/scripted-dashboard.ts';
import { findBarriers, type OpenTab, useBrowser } from '#testkit/processes/browser.ts';

const openTab = useBrowser();

const HOSTILE = '<img src=x onerror=alert(1)>\u202e';

const EVENTS: readonly TimelineEvent[] = [
  {
    number: 3,
    kind: 'drain',
    subject: 'vllm-a',
    from: secondsAgo(200),
    until: null,
    details: { by: 'ops', reason: 'driver update' },
  },
  {
    number: 2,
    kind: 'condition',
    subject: `tenant_limit_reached ${HOSTILE}`,
    from: secondsAgo(120),
    until: secondsAgo(60),
    details: {
      id: 'tenant_limit_reached',
      severity: 'warning',
      subject: HOSTILE,
      sentence: `${HOSTILE} is at its limit`,
    },
  },
  {
    number: 1,
    kind: 'rollout',
    subject: 'vllm-b',
    from: secondsAgo(1_000),
    until: secondsAgo(400),
    details: { step: 'compare', outcome: 'bad', sentence: 'slower than its peers', trace_id: 't' },
  },
];

const remember: ScriptedHistory = (path, query) => {
  if (path === 'timeline') return makeTimeline(EVENTS, toSince(query.get('since')));
  if (path === 'records') {
    const newest = Number(query.get('before') ?? 901) - 1;
    const records = Array.from({ length: 3 }, (_, at) => makeRecord(newest - at, { tenant: 'long-ago' }));
    return { records, history: { next: newest - 2, note: null } };
  }
  const since = toSince(query.get('since'));
  const total = makeSums({ requests: 7_200, errors: 36 });
  if (query.get('by') === 'model') {
    const rows = [makeRow({ model: 'llama-hour' }, { requests: 7_000 }), makeRow({ model: null })];
    return makeUsage({ rows, total, since, by: ['model'] });
  }
  if (query.get('by') === 'tenant')
    return makeUsage({ rows: [makeRow({ tenant: HOSTILE })], total, since, by: ['tenant'] });
  if (query.get('by') === 'replica,model') {
    const rows = [
      makeRow({ replica: 'vllm-a', model: 'llama-hour' }, { failures: { upstream_timeout: 36 } }),
    ];
    return makeUsage({ rows, total, since, by: ['replica', 'model'] });
  }
  return makeUsage({ rows: [makeRow({}, { start: since, requests: 120 })], total, since });
};

async function openDashboard(
  context: TestContext,
  overview: Overview = makeOverview(),
  options: Parameters<OpenTab>[1] & { readonly fragment?: string } = {},
) {
  return await openScripted(openTab, context, overview, { history: remember, ...options });
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const focusedLabel = (page: Page) => page.locator(':focus').getAttribute('aria-label');
const timelineOf = (page: Page) => page.getByRole('region', { name: 'What happened' });

describe('a range', () => {
  test('shows the figures of an hour in charts and tables, and the live ones again', async (context) => {
    const { page, dashboard, complaints } = await openDashboard(context);
    await press(page, '1 hour');
    await page.locator('#traffic-caption').getByText('the last hour').waitFor();
    const tile = page.locator('.tile').first();
    expect(await tile.locator('.now').innerText()).toBe('2.0');
    expect(await tile.locator('.aside').innerText()).toBe('7,200 requests');
    await page.locator('#models').getByText('llama-hour').waitFor();
    await page.locator('#models').getByText('without model').waitFor();
    await page.locator('#reasons').getByText('upstream_timeout').waitFor();
    expect(dashboard.asked).toContain('usage?since=1h&step=1m');
    expect(new URL(page.url()).hash).toBe('#range=1h');

    await press(page, '5 minutes');
    await page.locator('#traffic-caption').getByText('the last minute').waitFor();
    expect(await tile.locator('.now').innerText()).toBe('4.0');
    expect(await page.locator('#models').getByText('llama-hour').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('is in the URL, and survives a reload', async (context) => {
    const { page, dashboard } = await openDashboard(context, makeOverview(), { fragment: '#range=7d' });
    await page.locator('#traffic-caption').getByText('the last 7 days').waitFor();
    expect(dashboard.asked).toContain('usage?since=7d&step=1h');
    await page.reload();
    await page.locator('#traffic-caption').getByText('the last 7 days').waitFor();
  });

  test('that the history cannot sum is asked for in hours, and then told', async (context) => {
    const { page, dashboard } = await openDashboard(context);
    dashboard.remember((path, query) =>
      query.get('step') === '15m'
        ? { code: 'history_unavailable', message: 'too slow' }
        : remember(path, query),
    );
    await press(page, '1 day');
    await page.locator('#traffic-caption').getByText('the last 24 hours').waitFor();
    expect(dashboard.asked).toContain('usage?since=1d&step=1h');
    dashboard.remember((path, query) =>
      path === 'usage'
        ? { code: 'history_unavailable', message: 'It does not answer.' }
        : forgetAll(path, query),
    );
    await page.locator('#traffic-caption').getByText('It does not answer.').waitFor();
  });
});

describe('the requests of a range', () => {
  test('come from the history, filtered there, and older ones page by page', async (context) => {
    const { page, dashboard, complaints } = await openDashboard(context, makeOverview(), {
      fragment: '#range=1d',
    });
    await page.getByText('the newest 3 of the last 24 hours').waitFor();
    await page.getByRole('button', { name: 'Show older ones' }).click();
    await page.getByText('the newest 6 of the last 24 hours').waitFor();
    expect(dashboard.asked).toContain('records?since=1d&limit=200&before=898');
    await page.getByLabel('Tenant', { exact: true }).selectOption('long-ago');
    await expect.poll(() => dashboard.asked).toContain('records?since=1d&limit=200&tenant=long-ago');
    await page.getByRole('button', { name: 'Failures', exact: true }).last().click();
    await expect
      .poll(() => dashboard.asked)
      .toContain('records?since=1d&limit=200&tenant=long-ago&failed=true');
    await press(page, '5 minutes');
    await page.getByText('No request has failed.').waitFor();
    expect(complaints).toEqual([]);
  });
});

describe('what happened', () => {
  test('is a band that says all of it to those who hear it, and opens with a key', async (context) => {
    const { page, complaints } = await openDashboard(context);
    await press(page, '1 hour');
    const drains = timelineOf(page).getByRole('list', { name: 'Drains' });
    const band = drains.getByRole('button', {
      name: /^vllm-a drained \(driver update, by ops\), since \d\d:\d\d:\d\d, for 3 min$/,
    });
    await band.waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await band.focus();
    await page.keyboard.press('Enter');
    await dialogOf(page).getByText('driver update, by ops').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await expect.poll(() => focusedLabel(page)).toMatch(/^vllm-a drained/);
    expect(complaints).toEqual([]);
  });

  test('keeps the focus of a band while time goes on', async (context) => {
    const { page, dashboard } = await openDashboard(context);
    const band = timelineOf(page).getByRole('button', { name: /^vllm-a drained/ });
    await band.focus();
    const before = dashboard.asked.length;
    await expect.poll(() => dashboard.asked.length).toBeGreaterThan(before + 2);
    expect(await focusedLabel(page)).toMatch(/^vllm-a drained/);
  });

  test('is listed, the newest first, with the steps of a rollout', async (context) => {
    const { page } = await openDashboard(context, makeOverview(), { fragment: '#range=1h' });
    await press(page, 'List 3 events');
    const events = dialogOf(page).locator('#events-list > li');
    await expect.poll(() => events.count()).toBe(3);
    expect(await events.first().innerText()).toContain('is at its limit');
    expect(await events.last().innerText()).toContain('Rollout of vllm-b');
    expect(await events.last().innerText()).toContain('Comparison of vllm-b');
  });

  test('has names of clients as text', async (context) => {
    const { page, complaints } = await openDashboard(context, makeOverview(), { fragment: '#range=1h' });
    await timelineOf(page).getByRole('button', { name: /<img/ }).click();
    await dialogOf(page).getByRole('heading', { name: /<img/ }).waitFor();
    await page.locator('#tenants').getByTitle(HOSTILE).waitFor();
    expect(await page.locator('img[src="x"]').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('says so if it was nothing', async (context) => {
    const { page } = await openScripted(openTab, context, makeOverview());
    await timelineOf(page).getByText('Nothing happened in the last 5 minutes.').waitFor();
  });
});

test('without a history the page says so, how to switch it on, and asks for nothing', async (context) => {
  const { page, dashboard, complaints } = await openDashboard(
    context,
    makeOverview({ keeps_history: false }),
    {
      fragment: '#range=1d',
    },
  );
  await timelineOf(page).getByText('remove `history: off` from the configuration').waitFor();
  await page.locator('.tile').first().getByText('240 requests').waitFor();
  expect(dashboard.asked).toEqual([]);
  expect(await findBarriers(page)).toEqual([]);
  expect(complaints).toEqual([]);
});

test.for([
  ['light', { viewport: { width: 1440, height: 900 }, colorScheme: 'light' }],
  ['dark', { viewport: { width: 1440, height: 900 }, colorScheme: 'dark' }],
  ['on a phone', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
] as const)('a week has no barriers: %s', async ([, options], context) => {
  const { page, complaints } = await openDashboard(context, makeOverview(), {
    fragment: '#range=7d',
    ...options,
  });
  await timelineOf(page)
    .getByRole('button', { name: /^Rollout of vllm-b/ })
    .waitFor();
  expect(await findBarriers(page)).toEqual([]);
  const sideways = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  expect(await page.evaluate(sideways)).toBe(0);
  expect(complaints).toEqual([]);
});

import { describe, expect, type TestContext, test } from 'vitest';
import type { Overview } from '../../../src/admin/dashboard/overview.ts';
import { useBrowser } from '../../support/browser.ts';
import {
  makeOverview,
  makeReplica,
  makeTraffic,
  NO_TRAFFIC,
  secondsAgo,
} from '../../support/dashboard/made-overview.ts';
import { openScripted } from '../../support/dashboard/open-scripted.ts';
import { drainButton, replicaNames, rowOf } from '../../support/dashboard/page.ts';
import { fiftyReplicas, troubledFleet } from '../../support/dashboard/scenes.ts';

const openTab = useBrowser();

const openDashboard = (context: TestContext, overview: Overview, fragment = '') =>
  openScripted(openTab, context, overview, { fragment });

const busy = (name: string, requests: number) =>
  makeReplica({ name, last_minute: makeTraffic({ requests }) });

describe('the state of a replica', () => {
  test('is a word beside its colour, and what does not answer is first in its group', async (context) => {
    const { page, complaints } = await openDashboard(context, troubledFleet());
    const states = await page
      .locator('#replicas tr.replica')
      .evaluateAll((rows) =>
        rows.map((row) => `${row.getAttribute('data-name')} ${row.querySelector('.state')?.textContent}`),
      );
    expect(states).toEqual([
      ...['embed-a Unreachable', 'embed-b Serving'],
      ...['llama-d Draining', 'llama-c Drained', 'llama-a Serving', 'llama-b Serving'],
      ...['qwen-a Loading', 'qwen-b Serving'],
    ]);
    const colourOf = (kind: string) =>
      page.evaluate(`getComputedStyle(document.querySelector('.state[data-state="${kind}"]')).color`);
    expect(await colourOf('unreachable')).not.toBe(await colourOf('serving'));
    await rowOf(page, 'embed-a').getByText('connection refused · 3 min').waitFor();
    await page.getByText('1 unreachable, 1 loading, 1 draining, 1 drained, 4 serving').waitFor();
    expect(complaints).toEqual([]);
  });

  test('that is wrong marks the tab, and the mark goes with the reason for it', async (context) => {
    const dead = makeReplica({ name: 'a', reachability: 'unreachable' });
    const { page, dashboard } = await openDashboard(
      context,
      makeOverview({ replicas: [dead, busy('b', 1)] }),
    );
    await expect.poll(() => page.title()).toBe('⚠ gw-a · Spangate');
    dashboard.show(makeOverview());
    await page.getByText('No problems in the last minute').waitFor();
    expect(await page.title()).toBe('gw-a · Spangate');
  });
});

describe('errors', () => {
  test('turn amber and red, with their number and with what the latencies leave out', async (context) => {
    const { page } = await openDashboard(context, troubledFleet());
    const cell = rowOf(page, 'llama-b').locator('.col-errors');
    expect(await cell.innerText()).toMatch(/^30 %\s*72$/);
    expect(await cell.locator('.value').getAttribute('data-level')).toBe('bad');
    expect(await cell.getAttribute('title')).toContain('latencies are of successes');
    expect(await rowOf(page, 'llama-a').locator('.col-errors .value').getAttribute('data-level')).toBeNull();
    await page.locator('.tile[data-level="bad"]').getByText('8.4 %').waitFor();
    await page.getByRole('button', { name: 'llama-b fails 30 % of its requests' }).click();
    expect((await replicaNames(page)).slice(0, 2)).toEqual(['embed-a', 'llama-b']);
  });

  test('of clients have a share of their own', async (context) => {
    const lost = makeReplica({ name: 'a', last_minute: makeTraffic({ requests: 31, client_errors: 31 }) });
    const { page } = await openDashboard(
      context,
      makeOverview({ replicas: [lost], last_minute: lost.last_minute }),
    );
    const row = rowOf(page, 'a');
    expect(await row.locator('.col-errors').innerText()).toBe('0 %');
    expect(await row.locator('.col-client_errors').innerText()).toBe('100 %');
    expect(await row.locator('.col-client_errors .value').getAttribute('data-level')).toBe('warn');
    await page.getByRole('button', { name: '100 % of requests get 4xx' }).waitFor();
  });
});

describe('fifty replicas', () => {
  test('are grouped by their models; a group can be closed, and keeps its sums', async (context) => {
    const { page } = await openDashboard(context, fiftyReplicas());
    expect(await page.locator('#replicas tr.replica').count()).toBe(50);
    const group = page.locator('#replicas tr.group').filter({ hasText: 'BAAI/bge-m3' });
    await group.getByRole('button').click();
    expect(await page.locator('#replicas tr.replica').count()).toBe(42);
    expect(await group.getByRole('button').getAttribute('aria-expanded')).toBe('false');
    expect(await group.locator('.col-inflight').innerText()).toBe('340');
    await page.getByRole('button', { name: 'Group by model' }).click();
    expect(await page.locator('#replicas tr.group').count()).toBe(0);
    expect(await page.locator('#replicas tr.replica').count()).toBe(50);
  });

  test('are found by a search, and each has its whole name', async (context) => {
    const { page } = await openDashboard(context, fiftyReplicas());
    await page.getByLabel('Search replicas').fill('bge m3-5');
    expect(await replicaNames(page)).toEqual(['embeddings-bge-m3-5']);
    await expect.poll(() => new URL(page.url()).hash).toBe('#search=bge+m3-5');
    await page.reload();
    await rowOf(page, 'embeddings-bge-m3-5').waitFor();
    expect(await page.locator('#replicas tr.replica').count()).toBe(1);
    await page.getByLabel('Search replicas').fill('no such replica');
    await page.getByText('No replica matches this search.').waitFor();
    await page.getByLabel('Search replicas').fill('2l6p9 llama');
    const name = 'vllm-llama-3-3-70b-instruct-fp8-6d5f8c9b7d-2l6p9';
    expect(await replicaNames(page)).toEqual([name]);
    expect(await page.locator('.replica-name').innerText()).toBe(name);
    expect(await page.locator('.replica-name').getAttribute('title')).toContain(name);
  });
});

describe('the order', () => {
  const unsorted = [busy('a', 2), busy('b', 9), busy('c', 5)];

  test('follows a press on the head of a column, which says so', async (context) => {
    const { page } = await openDashboard(context, makeOverview({ replicas: unsorted }));
    const head = page.getByRole('columnheader', { name: 'Requests/s' });
    const press = () => page.locator('#replicas').getByRole('button', { name: 'Requests/s' }).click();
    const shown = async () => [await head.first().getAttribute('aria-sort'), ...(await replicaNames(page))];
    await press();
    expect(await shown()).toEqual(['descending', 'b', 'c', 'a']);
    await press();
    expect(await shown()).toEqual(['ascending', 'a', 'c', 'b']);
    await press();
    expect(await shown()).toEqual([null, 'a', 'b', 'c']);
  });

  test('stays while the pointer is over the table, and the focus stays with its button', async (context) => {
    const { page, dashboard } = await openDashboard(
      context,
      makeOverview({ replicas: unsorted }),
      '#sort=-requests',
    );
    const next = makeOverview({ replicas: [busy('a', 90), busy('b', 9), busy('c', 5), busy('d', 200)] });
    await rowOf(page, 'c').hover();
    await drainButton(page, 'c').focus();
    dashboard.show(next);
    await rowOf(page, 'd').waitFor();
    expect(await replicaNames(page)).toEqual(['b', 'c', 'a', 'd']);
    expect(await page.locator('[aria-label="Drain c"]:focus').count()).toBe(1);
    await page.getByLabel('Search replicas').click();
    await expect.poll(() => replicaNames(page)).toEqual(['d', 'a', 'b', 'c']);
  });
});

describe('drain progress', () => {
  test('counts down to safe to stop, and says so to a reader who looks elsewhere', async (context) => {
    const draining = (inflight: number) =>
      makeOverview({
        replicas: [
          makeReplica({
            ...{ name: 'a', drained: true, inflight, safe_to_stop: inflight === 0, since: secondsAgo(3) },
            last_minute: NO_TRAFFIC,
          }),
        ],
      });
    const { page, dashboard } = await openDashboard(context, draining(4));
    const progress = rowOf(page, 'a').getByRole('progressbar');
    await rowOf(page, 'a').getByText('4 requests left').waitFor();
    dashboard.show(draining(1));
    await rowOf(page, 'a').getByText('1 request left').waitFor();
    expect(await progress.evaluate((bar: { value: number; max: number }) => bar.value / bar.max)).toBe(0.75);
    dashboard.show(draining(0));
    await rowOf(page, 'a').getByText('Safe to stop').waitFor();
    await page.getByRole('status').filter({ hasText: 'a: safe to stop.' }).waitFor();
    expect(await progress.isHidden()).toBe(true);
  });
});

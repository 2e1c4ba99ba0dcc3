import { describe, expect, type TestContext, test } from 'vitest';
import { makeOverview, makeReplica, makeReplicaTraffic } from '#testkit/dashboard/made-overview.ts';
import { openScripted } from '#testkit/dashboard/open-scripted.ts';
import { drainButton, replicaNames, rowOf } from '#testkit/dashboard/page.ts';
import { fiftyReplicas } from '#testkit/dashboard/scenes.ts';
import { useBrowser } from '#testkit/processes/browser.ts';
import type { Overview } from '../../../src/admin/dashboard/overview.ts';

const openTab = useBrowser();

const openDashboard = (context: TestContext, overview: Overview, fragment = '') =>
  openScripted(openTab, context, overview, { fragment });

const busy = (name: string, requests: number) =>
  makeReplica({ name, last_minute: makeReplicaTraffic({ requests }) });

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

import { describe, expect, type TestContext, test } from 'vitest';
import {
  makeOverview,
  makeReplica,
  makeReplicaTraffic,
  NO_TRAFFIC,
  secondsAgo,
} from '#testkit/dashboard/made-overview.ts';
import { openScripted } from '#testkit/dashboard/open-scripted.ts';
import { rowOf } from '#testkit/dashboard/page.ts';
import { troubledFleet } from '#testkit/dashboard/scenes.ts';
import { useBrowser } from '#testkit/processes/browser.ts';
import type { Overview } from '../../../src/admin/dashboard/overview.ts';

const openTab = useBrowser();

const openDashboard = (context: TestContext, overview: Overview, fragment = '') =>
  openScripted(openTab, context, overview, { fragment });

const busy = (name: string, requests: number) =>
  makeReplica({ name, last_minute: makeReplicaTraffic({ requests }) });

describe('the state of a replica', () => {
  test('is a word beside its colour, and what does not answer or fails requests is first in its group', async (context) => {
    const { page, complaints } = await openDashboard(context, troubledFleet());
    const states = await page
      .locator('#replicas tr.replica')
      .evaluateAll((rows) =>
        rows.map((row) => `${row.getAttribute('data-name')} ${row.querySelector('.state')?.textContent}`),
      );
    expect(states).toEqual([
      ...['embed-a Unreachable', 'embed-b Serving'],
      ...['llama-b Serving', 'llama-d Draining', 'llama-c Drained', 'llama-a Serving'],
      ...['qwen-a Loading', 'qwen-b Serving'],
    ]);
    const colourOf = (kind: string) =>
      page.evaluate(`getComputedStyle(document.querySelector('.state[data-state="${kind}"]')).color`);
    expect(await colourOf('unreachable')).not.toBe(await colourOf('serving'));
    await rowOf(page, 'embed-a').getByText('connection refused · 3 min').waitFor();
    await page.getByText('1 unreachable, 1 loading, 1 draining, 1 drained, 4 serving').waitFor();
    expect(complaints).toEqual([]);
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
  });

  test('of a replica are those of its attempts, also where another replica answered in the end', async (context) => {
    const hidden = makeReplica({
      name: 'a',
      last_minute: makeReplicaTraffic({ requests: 108, attempts: 148, errors: 40 }),
    });
    const { page } = await openDashboard(context, makeOverview({ replicas: [hidden, busy('b', 148)] }));
    const row = rowOf(page, 'a');
    expect(await row.locator('.col-errors').innerText()).toMatch(/^27 %\s*40$/);
    expect(await row.locator('.col-requests').innerText()).toMatch(/^1\.8\s*of 2\.5$/);
    expect(await row.locator('.col-errors').getAttribute('title')).toContain(
      '148 attempts in the last minute',
    );
    expect(await rowOf(page, 'b').locator('.col-requests').innerText()).toBe('2.5');
    expect(await page.locator('tr.group .col-errors').innerText()).toBe('14 %');
    await page.locator('.tile').getByText('240 · 296 attempts').waitFor();
    await page.locator('.tile', { hasText: 'Errors' }).getByText('0 %', { exact: true }).waitFor();
  });

  test('of clients have a share of their own', async (context) => {
    const lost = makeReplica({
      name: 'a',
      last_minute: makeReplicaTraffic({ requests: 31, client_errors: 31 }),
    });
    const { page } = await openDashboard(
      context,
      makeOverview({ replicas: [lost], last_minute: lost.last_minute }),
    );
    const row = rowOf(page, 'a');
    expect(await row.locator('.col-errors').innerText()).toBe('0 %');
    expect(await row.locator('.col-client_errors').innerText()).toBe('100 %');
    expect(await row.locator('.col-client_errors .value').getAttribute('data-level')).toBe('warn');
  });
});

describe('drain progress', () => {
  test('counts down to safe to stop, and says so to a reader who looks elsewhere', async (context) => {
    const draining = (inflight: number) =>
      makeOverview({
        replicas: [
          makeReplica({
            name: 'a',
            drained: true,
            inflight,
            safe_to_stop: inflight === 0,
            since: secondsAgo(3),
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

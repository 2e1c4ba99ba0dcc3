import type { Page } from 'playwright-core';
import { expect, type TestContext, test } from 'vitest';
import { makeOverview, makeReplica, makeTraffic, makeTrend } from '#testkit/dashboard/made-overview.ts';
import { openScripted } from '#testkit/dashboard/open-scripted.ts';
import { replicaNames, rowOf } from '#testkit/dashboard/page.ts';
import { troubledFleet } from '#testkit/dashboard/scenes.ts';
import { type OpenTab, useBrowser } from '#testkit/processes/browser.ts';
import type { Overview } from '../../../src/admin/dashboard/overview.ts';

const openTab = useBrowser();

const open = (context: TestContext, overview: Overview, options: Parameters<OpenTab>[1] = {}) =>
  openScripted(openTab, context, overview, options);

/** An overview with one request in five seconds, of which one failed `slicesAgo` slices ago; null: none. */
function makeQuiet(slicesAgo: number | null): Overview {
  const { history, ...rest } = makeOverview();
  const quiet = { requests: 1, requests_per_s: 0.2, errors: 0 };
  return {
    ...rest,
    history: history.map((past, at) => ({
      ...past,
      ...quiet,
      errors: slicesAgo !== null && at === history.length - slicesAgo ? 1 : 0,
    })),
  };
}

/** What the test uses of a canvas in the browser. */
interface Canvas {
  readonly width: number;
  readonly height: number;
  getContext(kind: '2d'): {
    getImageData(x: number, y: number, width: number, height: number): { readonly data: Uint8ClampedArray };
  };
}

/** What the test uses of a drawing in the browser. */
interface Drawn {
  getBBox(): { readonly height: number };
}

/** How many pixels of each row of the tile's chart are red, the bottom row last. */
const countRed = (page: Page, tile: string): Promise<readonly number[]> =>
  page
    .locator('.tile', { hasText: tile })
    .locator('canvas')
    .evaluate((element) => {
      const canvas = element as unknown as Canvas;
      const { width, height } = canvas;
      const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
      return Array.from({ length: height }, (_, y) => {
        const reds = Array.from({ length: width }, (_each, x) => 4 * (y * width + x)).filter(
          (at) => (data[at] ?? 0) > 150 && (data[at + 1] ?? 0) < 110 && (data[at + 3] ?? 0) > 150,
        );
        return reds.length;
      });
    });

test('a chart has no red where no request failed, and one failure is no mountain', async (context) => {
  const { page, dashboard } = await open(context, makeQuiet(null));
  const sumRed = async (tile: string) => (await countRed(page, tile)).reduce((sum, count) => sum + count, 0);
  for (const tile of ['Requests/s', 'Errors']) expect(await sumRed(tile), tile).toBe(0);
  dashboard.show(makeQuiet(30));
  await expect.poll(() => sumRed('Errors')).toBeGreaterThan(0);
  const rows = await countRed(page, 'Errors');
  expect(Math.max(...rows)).toBeLessThan(20);
  expect(rows.findIndex((count) => count > 0) / rows.length).toBeGreaterThan(0.7);
});

test('one failed request in five minutes is a small bar of its replica', async (context) => {
  const { attempts, errors } = makeTrend(0);
  const trend = { attempts: attempts.with(20, 1), errors: errors.with(20, 1) };
  const { page } = await open(context, makeOverview({ replicas: [makeReplica({ name: 'a', trend })] }));
  const heights = await rowOf(page, 'a')
    .locator('.spark path')
    .evaluateAll((paths) => paths.map((path) => (path as unknown as Drawn).getBBox().height));
  expect(heights).toEqual([2.5, 2.5]);
});

test('all tiles have the same number of failures', async (context) => {
  const last_minute = makeTraffic({ requests: 100, errors: 7, client_errors: 20, canceled: 3 });
  const { page } = await open(context, makeOverview({ last_minute }));
  const asides = await page.locator('#tiles .aside').allInnerTexts();
  const counts = asides.flatMap((text) => /(\d+) (?:failed|failure)/.exec(text)?.[1] ?? []);
  expect(counts).toEqual(['7', '7', '7']);
});

test('at 820 px the table of replicas has requests per second, and reasons have a line', async (context) => {
  const { page } = await open(context, troubledFleet(), { viewport: { width: 820, height: 1180 } });
  expect(await rowOf(page, 'llama-b').locator('.col-requests').innerText()).toBe('4.0');
  const reason = rowOf(page, 'embed-a').locator('.detail');
  expect(await reason.evaluate((element) => element.scrollWidth <= element.clientWidth)).toBe(true);
});

test('on a phone the most urgent stay first, also after a touch', async (context) => {
  const replicas = ['a', 'b', 'c'].map((name) => makeReplica({ name, models: [name] }));
  const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
  const { page, dashboard } = await open(context, makeOverview({ replicas }), phone);
  await page.locator('#replicas tr.group').first().getByRole('button').tap();
  await page.locator('#replicas tr.group').first().getByRole('button').tap();
  expect(await replicaNames(page)).toEqual(['a', 'b', 'c']);
  const failing = makeReplica({ name: 'c', models: ['c'], health: 'failing' });
  dashboard.show(makeOverview({ replicas: [...replicas.slice(0, 2), failing] }));
  await expect.poll(() => replicaNames(page)).toEqual(['c', 'a', 'b']);
});

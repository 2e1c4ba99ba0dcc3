import type { Page } from 'playwright-core';
import { describe, expect, type TestContext, test } from 'vitest';
import {
  makeOverview,
  makeRecord,
  makeReplica,
  makeReplicaTraffic,
  makeTraffic,
} from '#testkit/dashboard/made-overview.ts';
import { openScripted } from '#testkit/dashboard/open-scripted.ts';
import { collectorDown, fiftyReplicas, troubledFleet } from '#testkit/dashboard/scenes.ts';
import { findBarriers, type OpenTab, useBrowser } from '#testkit/processes/browser.ts';
import type { Overview } from '../../../src/admin/dashboard/overview.ts';

const openTab = useBrowser();

const openDashboard = (context: TestContext, overview: Overview, options: Parameters<OpenTab>[1] = {}) =>
  openScripted(openTab, context, overview, options);

/** The cells of replicas that an operator needs and that are not wholly inside a window of this width. */
const findCellsOutOfView = (page: Page, width: number) =>
  page.locator('#replicas tr.replica').evaluateAll(
    (rows, windowWidth) =>
      rows.flatMap((row) =>
        ['.replica-name', '.state', '.col-errors', '.col-inflight', 'button'].filter((selector) => {
          const box = row.querySelector(selector)?.getBoundingClientRect();
          return box === undefined || box.width === 0 || box.left < 0 || box.right > windowWidth;
        }),
      ),
    width,
  );

/** The names of replicas that their button covers. */
const findCoveredNames = (page: Page) =>
  page.locator('#replicas tr.replica').evaluateAll((rows) =>
    rows.flatMap((row) => {
      const name = row.querySelector('.replica-name')?.getBoundingClientRect();
      const button = row.querySelector('button')?.getBoundingClientRect();
      if (name === undefined || button === undefined) return ['no name'];
      const isBeside = name.right <= button.left || name.bottom <= button.top || name.top >= button.bottom;
      return isBeside ? [] : [row.getAttribute('data-name')];
    }),
  );

const sidewaysOf = (page: Page) =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');

describe('fifty replicas with long names', () => {
  test('have name, state, errors, in flight and their button at every width', async (context) => {
    const { page } = await openDashboard(context, fiftyReplicas());
    for (const width of [1920, 1440, 1280, 1024, 820, 640, 390, 320]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await findCellsOutOfView(page, width), `${width} px`).toEqual([]);
      expect(await findCoveredNames(page), `${width} px`).toEqual([]);
      expect(await sidewaysOf(page), `${width} px`).toBe(0);
    }
  });

  test('take one line each on a desktop and two on a phone', async (context) => {
    const { page } = await openDashboard(context, fiftyReplicas());
    const tallestAt = async (width: number) => {
      await page.setViewportSize({ width, height: 900 });
      const rows = page.locator('#replicas tr.replica');
      const heights = await rows.evaluateAll((all) => all.map((row) => row.getBoundingClientRect().height));
      return Math.max(...heights);
    };
    expect(await tallestAt(1440)).toBeLessThan(40);
    expect(await tallestAt(390)).toBeLessThan(84);
  });
});

test.for([
  ['with prices the cost', {}, '.cost'],
  ['without prices GPU time', { cost: null, currency: null }, '.gpu'],
] as const)(
  'no figure of models and tenants is cut, and %s is shown from 1,280 px on',
  async ([, price, shown], context) => {
    const last_minute = makeTraffic({ errors: 240, client_errors: 240, requests_per_s: 1_234, ...price });
    const parts = [{ name: 'Qwen/Qwen3-235B-A22B-Instruct-2507-FP8', last_minute }];
    const { page } = await openDashboard(context, makeOverview({ models: parts, tenants: parts }));
    const figures = page.locator('#models tbody .number, #tenants tbody .number');
    for (const width of [2400, 1920, 1280, 1024, 820, 640, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const cut = await figures.evaluateAll((cells) =>
        cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent),
      );
      expect(cut, `${width} px`).toEqual([]);
      if (width < 1280) continue;
      expect(await page.locator(`#models tbody ${shown}`).isVisible(), `${width} px`).toBe(true);
    }
  },
);

test('the header tells its times in the zone of the reader, also where it is pointed at', async (context) => {
  const { page } = await openDashboard(context, makeOverview(), { timezoneId: 'Asia/Tokyo' });
  const facts = page.locator('#gateway-facts');
  expect(await facts.textContent()).toContain('config\u00a0of\u00a021:00:00');
  expect(await facts.getAttribute('title')).toMatch(/started 18:06:40\nconfiguration loaded 21:00:00$/);
});

test('at 1,280 px nothing of the header, the tiles and the requests is cut', async (context) => {
  const hidden = makeReplicaTraffic({ requests: 10_960, attempts: 11_480 });
  const overview = makeOverview({
    replicas: [makeReplica({ name: 'a', last_minute: hidden })],
    last_minute: makeTraffic({ requests: 10_960 }),
    records: [
      makeRecord(1, { status: 429, error_type: 'rate_limit_exceeded', tenant: 'document-pipeline' }),
      makeRecord(2, { endpoint: '/v1/embeddings', model: 'waiting-model-one' }),
    ],
  });
  const name = 'spangate-gateway-7c9bd5-xyz1';
  const { page } = await openDashboard(
    context,
    { ...overview, gateway: { ...overview.gateway, name, config_loaded_at: '2026-11-19T12:10:00.000Z' } },
    { viewport: { width: 1280, height: 900 } },
  );
  const texts = page.locator('#gateway-name, #gateway-facts, .tile .aside, #records tbody *');
  const cut = await texts.evaluateAll((all) =>
    all
      .filter(
        ({ clientWidth, clientHeight, scrollWidth, scrollHeight }) =>
          clientWidth > 0 && (scrollWidth > clientWidth + 1 || scrollHeight > clientHeight + 1),
      )
      .map((box) => box.textContent),
  );
  expect(cut).toEqual([]);
});

describe('the page has no barriers', () => {
  test.for([
    ['light', troubledFleet, { colorScheme: 'light' }],
    ['dark', troubledFleet, { colorScheme: 'dark' }],
    ['on a tablet', collectorDown, { viewport: { width: 820, height: 1180 } }],
    ['on a phone', troubledFleet, { viewport: { width: 360, height: 780 }, colorScheme: 'dark' }],
  ] as const)('%s', async ([, scene, options], context) => {
    const { page, complaints } = await openDashboard(context, scene(), options);
    expect(await findBarriers(page)).toEqual([]);
    expect(await sidewaysOf(page)).toBe(0);
    expect(complaints).toEqual([]);
  });
});

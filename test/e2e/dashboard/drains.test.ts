import { expect, type TestContext, test } from 'vitest';
import { makeOverview, makeReplica, type OverviewReplica } from '#testkit/dashboard/made-overview.ts';
import { openScripted } from '#testkit/dashboard/open-scripted.ts';
import { dialogOf, drainButton, rowOf } from '#testkit/dashboard/page.ts';
import { findBarriers, useBrowser } from '#testkit/processes/browser.ts';

const openTab = useBrowser();

const openDashboard = (context: TestContext, ...replicas: readonly OverviewReplica[]) =>
  openScripted(openTab, context, makeOverview({ replicas }));

const a = makeReplica({ name: 'a' });
const b = makeReplica({ name: 'b' });

test('a drain is refused by the gateway if no other replica answers, unless that was accepted', async (context) => {
  const { page, dashboard } = await openDashboard(context, a, b);
  dashboard.refuseDrain({ code: 'last_replica', message: 'No other replica answers for m.' });
  await drainButton(page, 'a').click();
  await dialogOf(page).getByText('New requests for m go to b.').waitFor();
  await dialogOf(page).getByLabel('Reason').fill('driver update');
  await dialogOf(page).getByRole('button', { name: 'Drain', exact: true }).click();

  await dialogOf(page).getByText('No other replica answers for m.').waitFor();
  const goOn = dialogOf(page).getByRole('button', { name: 'Drain anyway' });
  expect(await goOn.isDisabled()).toBe(true);
  expect(await findBarriers(page)).toEqual([]);
  await dialogOf(page).getByLabel('I accept that requests will fail.').check();
  await goOn.click();
  await page.getByText('a gets no new requests.').waitFor();
  const call = { name: 'a', action: 'drain', reason: 'driver update' };
  expect(dashboard.drains).toEqual([
    { ...call, unlessLast: true },
    { ...call, unlessLast: false },
  ]);
});

test('the last replica that answers needs a second step, which Enter does not skip', async (context) => {
  const dead = makeReplica({ name: 'b', reachability: 'unreachable' });
  const { page, dashboard } = await openDashboard(context, a, dead);
  await drainButton(page, 'a').click();
  await dialogOf(page).getByText('a is the last replica for m that answers.').waitFor();
  await dialogOf(page).getByLabel('Reason').press('Enter');
  await dialogOf(page).getByRole('button', { name: 'Cancel' }).click();
  await dialogOf(page).waitFor({ state: 'hidden' });
  expect(dashboard.drains).toEqual([]);

  await drainButton(page, 'a').click();
  const accept = dialogOf(page).getByLabel('I accept that requests will fail.');
  expect(await accept.isChecked()).toBe(false);
  await accept.check();
  await dialogOf(page).getByRole('button', { name: 'Drain anyway' }).click();
  await dialogOf(page).waitFor({ state: 'hidden' });
  expect(dashboard.drains).toMatchObject([{ name: 'a', unlessLast: false }]);
});

test('needs no mouse: Enter opens the dialog, Escape closes it, and the focus returns', async (context) => {
  const { page, dashboard } = await openDashboard(context, a, b);
  const focused = page.locator('[aria-label="Drain a"]:focus');
  while ((await focused.count()) === 0) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await dialogOf(page).waitFor();
  await page.keyboard.press('Escape');
  await dialogOf(page).waitFor({ state: 'hidden' });
  expect(await focused.count()).toBe(1);

  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  await page.getByText('a gets no new requests.').waitFor();
  expect(dashboard.drains).toEqual([{ name: 'a', action: 'drain', reason: null, unlessLast: true }]);
});

test('an undrain says how long the share of turns grows, and the row shows how far that is', async (context) => {
  const drained = makeReplica({ name: 'a', drained: true, inflight: 0, safe_to_stop: true });
  const ramping = makeReplica({ name: 'b', ramp: { share: 0.43, elapsed_ms: 24_000, duration_ms: 60_000 } });
  const { page, dashboard } = await openDashboard(context, drained, ramping);
  await rowOf(page, 'b').getByText('Ramp: 43 % of its turns').waitFor();
  await drainButton(page, 'b').click();
  expect(await dialogOf(page).getByLabel('Its share of turns grows').isVisible()).toBe(false);
  await dialogOf(page).getByRole('button', { name: 'Cancel' }).click();

  await rowOf(page, 'a').getByRole('button', { name: 'Undrain a' }).click();
  await dialogOf(page).getByLabel('Its share of turns grows').selectOption('over a minute');
  expect(await findBarriers(page)).toEqual([]);
  await dialogOf(page).getByRole('button', { name: 'Undrain', exact: true }).click();
  await page.getByText('a gets new requests again.').waitFor();
  expect(dashboard.drains).toEqual([
    { name: 'a', action: 'undrain', reason: null, unlessLast: false, ramp: '60s' },
  ]);
});

test('a name is never markup or a path', async (context) => {
  const hostile = makeReplica({ name: '../<b>x</b>?a#b', drained: true, inflight: 0, safe_to_stop: true });
  const { page, dashboard } = await openDashboard(context, b, hostile);
  await rowOf(page, hostile.name)
    .getByRole('button', { name: `Undrain ${hostile.name}` })
    .click();
  await dialogOf(page).getByText(`${hostile.name} gets new requests at once`).waitFor();
  await dialogOf(page).getByRole('button', { name: 'Undrain' }).click();
  await dialogOf(page).waitFor({ state: 'hidden' });
  expect(dashboard.drains).toMatchObject([{ name: hostile.name, action: 'undrain' }]);
});

import type { Page } from 'playwright-core';

/** Fast enough for tests, and slow enough that a page does little else. */
export const POLL_INTERVAL_MS = 80;

/** The page's HTML with a poll interval for tests. */
export const withFastPolls = (html: string): string =>
  html.replace(/(data-poll-interval-ms=)"\d+"/, `$1"${POLL_INTERVAL_MS}"`);

/** Lets a page poll fast that a gateway serves. */
export async function pollFast(page: Page, adminUrl: string): Promise<void> {
  await page.route(`${adminUrl}/`, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: withFastPolls(await response.text()) });
  });
}

/** Opens the page at this URL and signs in. */
export async function signIn(page: Page, url: string, token: string): Promise<void> {
  await page.goto(url);
  await page.getByLabel('Token', { exact: true }).fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Opens the page at this URL with the token of an earlier visit, and waits for the data. */
export async function openSignedIn(page: Page, url: string, token: string): Promise<void> {
  await page.addInitScript(`sessionStorage.setItem('spangate.admin_token', ${JSON.stringify(token)})`);
  await page.goto(url);
  await page.getByText('Live', { exact: true }).waitFor();
}

export const rowOf = (page: Page, replica: string) => page.locator(`#replicas tr[data-name="${replica}"]`);
export const replicaNames = (page: Page) =>
  page
    .locator('#replicas tr.replica')
    .evaluateAll((rows) => rows.map((row) => row.getAttribute('data-name')));
export const recordRows = (page: Page) => page.locator('#records tbody tr');
export const dialogOf = (page: Page) => page.getByRole('dialog');
export const drainButton = (page: Page, replica: string) =>
  page.getByRole('button', { name: `Drain ${replica}`, exact: true });

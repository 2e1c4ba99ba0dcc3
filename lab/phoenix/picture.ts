import { startBrowser } from '#testkit/programs/browser.ts';

/** Takes a picture of one trace in Phoenix' web page: its spans, and the fields of the record. */
export async function takePicture(url: string, path: string): Promise<void> {
  await using browser = await startBrowser();
  const page = await browser.newPage({ viewport: { width: 1500, height: 1290 }, colorScheme: 'light' });
  await page.addInitScript(() => localStorage.setItem('arize-phoenix-theme', 'light'));
  await page.goto(url);
  const trace = page.getByRole('dialog');
  await trace.getByRole('tab', { name: 'Attributes' }).click();
  await trace.getByRole('button', { name: 'Search JSON keys and values' }).click();
  await page.keyboard.type('gateway.');
  await trace.getByText('llm.model_name').waitFor({ state: 'hidden' });
  await trace.getByText('gateway.replica').waitFor();
  await trace.screenshot({ path, animations: 'disabled' });
}

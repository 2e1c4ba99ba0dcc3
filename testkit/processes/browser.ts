import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, type TestContext } from 'vitest';

/** Paths where distributions install Chromium. */
const BINARIES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** A tab of a real Chromium. */
export interface Tab extends AsyncDisposable {
  readonly page: Page;
  /** Errors so far: of scripts, of the content security policy, of the console. */
  readonly complaints: readonly string[];
}

/** Opens a tab of its own session. If Chromium is not installed, the test is skipped with the reason; in CI it fails. */
export type OpenTab = (context: TestContext, options?: BrowserContextOptions) => Promise<Tab>;

/** Starts one Chromium for all tests of a file with the first tab, and closes it after the last test. */
export function useBrowser(): OpenTab {
  let browser: Promise<Browser> | null = null;
  afterAll(async () => void (await (await browser)?.close()));
  return async (context, options = {}) => {
    const executablePath = findChromium(context);
    // Root in a container has no sandbox; all pages are ours.
    browser ??= chromium.launch({ executablePath, args: ['--no-sandbox'] });
    const session = await (await browser).newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await session.newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
    });
    return { page, complaints, [Symbol.asyncDispose]: () => session.close() };
  };
}

function findChromium(context: TestContext): string {
  const path = BINARIES.find((each) => existsSync(each));
  if (path !== undefined) return path;
  const reason = 'needs Chromium (Debian package chromium)';
  if (process.env.CI === 'true') throw new Error(reason);
  return context.skip(reason);
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** The violations that axe-core finds in the current page: rule and elements, one text each. */
export async function findBarriers(page: Page): Promise<readonly string[]> {
  await page.evaluate(await readFile(AXE, 'utf8'));
  return await page.evaluate(async () => {
    const { axe } = globalThis as unknown as typeof import('axe-core') & { axe: typeof import('axe-core') };
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(' ')}`);
  });
}

import type { Page } from 'playwright-core';
import type { TestContext } from 'vitest';
import type { OpenTab } from '../processes/browser.ts';
import { forgetAll } from './made-history.ts';
import type { Overview } from './made-overview.ts';
import { openSignedIn } from './page.ts';
import {
  type ScriptedDashboard,
  type ScriptedHistory,
  startScriptedDashboard,
  TOKEN,
} from './scripted-dashboard.ts';

/** A tab that shows a scripted dashboard. Both are closed when the test has finished. */
export interface OpenedDashboard {
  readonly dashboard: ScriptedDashboard;
  readonly page: Page;
  /** Errors so far: of scripts, of the content security policy, of the console. */
  readonly complaints: readonly string[];
}

/** Opens the dashboard with this overview, signed in. The fragment of its URL begins with `#`. */
export async function openScripted(
  openTab: OpenTab,
  context: TestContext,
  overview: Overview,
  {
    fragment = '',
    history = forgetAll,
    ...options
  }: Parameters<OpenTab>[1] & { readonly fragment?: string; readonly history?: ScriptedHistory } = {},
): Promise<OpenedDashboard> {
  const dashboard = await startScriptedDashboard(overview, history);
  context.onTestFinished(() => dashboard[Symbol.asyncDispose]());
  const tab = await openTab(context, options);
  context.onTestFinished(() => tab[Symbol.asyncDispose]());
  await openSignedIn(tab.page, dashboard.url + fragment, TOKEN);
  return { dashboard, page: tab.page, complaints: tab.complaints };
}

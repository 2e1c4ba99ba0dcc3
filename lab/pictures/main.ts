import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { openSignedIn } from '#testkit/dashboard/page.ts';
import { startBrowser } from '#testkit/programs/browser.ts';
import { ADMIN_TOKEN } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { ROOT } from '#testkit/programs/results.ts';
import { type Fleet, sendTraffic, startFleet } from './fleet.ts';

const USAGE = `npm run lab -- pictures [--seconds N] [--into DIR]
  Takes the pictures of the dashboard: a gateway before eight replicas, of which one does not answer, one fails some of
  its requests and one is drained, with a simulated week behind it. Needs Debian's chromium.
  --seconds   of traffic before the pictures (default 320: the dashboard shows five minutes)
  --into      the folder of the pictures (default docs/images)`;

/** The drain is this old in the pictures. */
const DRAINED_FOR_MS = 75_000;
const EARLY_MS = 12_000;

interface Picture {
  readonly file: string;
  readonly options: BrowserContextOptions;
  /** The button of the page that is pressed first. */
  readonly button?: string;
  /** The fragment of its URL; `{slow}` is the id of a slow request. */
  readonly fragment?: string;
  /** What must be there before it is taken. */
  readonly shows?: string;
  /** Taken when the traffic has just begun: minutes of it would be a mountain beside the week before. */
  readonly isEarly?: boolean;
}

const WIDE = { width: 1440, height: 1180 };

const PICTURES: readonly Picture[] = [
  { file: 'dashboard-light.png', options: { viewport: WIDE, colorScheme: 'light' } },
  { file: 'dashboard-dark.png', options: { viewport: WIDE, colorScheme: 'dark' } },
  { file: 'readme-dashboard.png', options: { viewport: { width: 1440, height: 790 }, colorScheme: 'light' } },
  {
    file: 'dashboard-phone.png',
    options: {
      viewport: { width: 390, height: 844 },
      deviceScaleFactor: 2,
      isMobile: true,
      hasTouch: true,
      colorScheme: 'light',
    },
    button: 'Replicas',
  },
  ...toBothWidths('day', 600, { fragment: 'range=1d', shows: '#timeline .band', isEarly: true }),
  ...toBothWidths('usage', 560, { fragment: 'view=usage&span=7d', shows: '#usage tfoot' }),
  ...toBothWidths('request', 790, { fragment: 'record={slow}', shows: '.usual-bar' }),
];

/** A part of the page on a desktop and on a phone. */
function toBothWidths(
  name: string,
  height: number,
  of: Pick<Picture, 'fragment' | 'shows' | 'isEarly'>,
): readonly Picture[] {
  const light = { colorScheme: 'light' } as const;
  const phone = {
    viewport: { width: 390, height: 844 },
    deviceScaleFactor: 2,
    isMobile: true,
    hasTouch: true,
  };
  return [
    { file: `dashboard-${name}.png`, options: { viewport: { width: 1440, height }, ...light }, ...of },
    { file: `dashboard-${name}-phone.png`, options: { ...phone, ...light }, ...of },
  ];
}

const { seconds, into } = startProgram(USAGE, {
  seconds: { type: 'string', default: '320' },
  into: { type: 'string', default: join(ROOT, 'docs/images') },
});
await takeAll(1_000 * toCount(seconds));

async function takeAll(trafficMs: number): Promise<void> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-pictures-'));
  await using fleet = await startFleet(folder.path);
  const end = new AbortController();
  const traffic = sendTraffic(fleet.gateway.url, end.signal);
  await using browser = await startBrowser();
  await sleep(EARLY_MS);
  await takePictures(browser, fleet, (picture) => picture.isEarly === true);
  await sleep(Math.max(0, trafficMs - DRAINED_FOR_MS - EARLY_MS));
  await fleet.drainOne();
  await sleep(Math.min(trafficMs, DRAINED_FOR_MS));
  await takePictures(browser, fleet, (picture) => picture.isEarly !== true);
  end.abort();
  await traffic;
}

async function takePictures(
  browser: Browser,
  { gateway, findSlow }: Fleet,
  isWanted: (picture: Picture) => boolean,
): Promise<void> {
  const slow = await findSlow();
  for (const { file, options, button, fragment = '', shows = '#replicas tr.replica' } of PICTURES.filter(
    isWanted,
  )) {
    const page = await browser.newPage(options);
    await openSignedIn(page, `${gateway.adminUrl}/#${fragment.replace('{slow}', slow)}`, ADMIN_TOKEN);
    await page.locator(shows).first().waitFor();
    if (button !== undefined) await page.getByRole('button', { name: button, exact: true }).click();
    await page.screenshot({ path: join(into, file), animations: 'disabled' });
    await page.close();
    console.log(join(into, file));
  }
}

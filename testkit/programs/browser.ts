import { type Browser, chromium } from 'playwright-core';

/** Starts Debian's Chromium, as root, without network traffic of its own. */
export async function startBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--disable-background-networking',
      '--disable-sync',
    ],
  });
}

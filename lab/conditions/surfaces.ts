import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { quickStart } from '#testkit/processes/quick-start.ts';
import { ADMIN_TOKEN, askAdmin, type GatewayProcess } from '#testkit/programs/gateway-process.ts';
import { ROOT } from '#testkit/programs/results.ts';

/** Where a condition is to be seen. */
export const SURFACES = ['api', 'overview', 'metrics', 'log', 'status', 'page'] as const;

export type Surface = (typeof SURFACES)[number];

/** What is looked for: as a scene has it. */
interface Wanted {
  readonly id: string;
  readonly subject: string | RegExp;
}

interface Listed {
  readonly conditions: readonly {
    readonly id: string;
    readonly subject: string;
    readonly sentence: string;
  }[];
}

/** Whether a surface shows a condition now. `page`: the dashboard, signed in; null: it is not looked at. */
export async function isShown(
  surface: Surface,
  wanted: Wanted,
  gateway: GatewayProcess,
  page: Page | null,
): Promise<boolean> {
  switch (surface) {
    case 'api':
      return (await sentenceOf(wanted, gateway, '/admin/conditions')) !== null;
    case 'overview':
      return (await sentenceOf(wanted, gateway, '/admin/overview')) !== null;
    case 'metrics':
      return await isInMetrics(wanted, gateway);
    case 'log':
      return isInLog(wanted, gateway);
    case 'status':
      return await isInStatus(wanted, gateway);
    case 'page':
      return page !== null && (await isOnPage(wanted, page));
  }
}

/** What the admin API says of a condition; null: it is not on. */
export async function sentenceOf(
  { id, subject }: Wanted,
  { adminUrl }: GatewayProcess,
  path: '/admin/conditions' | '/admin/overview' = '/admin/conditions',
): Promise<string | null> {
  const { conditions } = (await askAdmin(adminUrl, 'GET', path)) as Listed;
  const found = conditions.find((each) => each.id === id && isMeant(subject, each.subject));
  return found?.sentence ?? null;
}

function isMeant(wanted: string | RegExp, subject: string): boolean {
  return typeof wanted === 'string' ? wanted === subject : wanted.test(subject);
}

async function isInMetrics({ id, subject }: Wanted, { adminUrl }: GatewayProcess): Promise<boolean> {
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  const text = await (await fetch(`${adminUrl}/metrics`, { headers })).text();
  return [...text.matchAll(/^gateway_condition\{id="(\w+)",severity="\w+",subject="([^"]*)"\} 1$/gm)].some(
    ([, found, name = '']) => found === id && isMeant(subject, name),
  );
}

/** Whether the last line about it is not that of its end. */
function isInLog({ id, subject }: Wanted, { log }: GatewayProcess): boolean {
  const lines = log
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
    .filter(({ condition, ...fields }) => condition === id && names(fields, subject));
  const last = lines.at(-1);
  return last !== undefined && !String(last.msg).startsWith('over: ');
}

/** Whether one of these is the subject. The gateway itself has no name in a line. */
function names(fields: Readonly<Record<string, unknown>>, subject: string | RegExp): boolean {
  return subject === '' || Object.values(fields).some((value) => isMeant(subject, String(value)));
}

/** Whether `gateway status` has it. */
async function isInStatus(wanted: Wanted, gateway: GatewayProcess): Promise<boolean> {
  const { conditions } = JSON.parse(await readStatus(gateway, '--json')) as Listed;
  return conditions.some(({ id, subject }) => id === wanted.id && isMeant(wanted.subject, subject));
}

/** What the command `gateway status` prints. */
export async function readStatus(
  { adminUrl }: GatewayProcess,
  option: '--json' | '--verbose',
): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(ROOT, 'src/main.ts'), 'status', option, '--admin', adminUrl],
    { env: { ...quickStart(), PATH: process.env.PATH, SVC_ADMIN_TOKEN: ADMIN_TOKEN } },
  ).catch((error: { readonly stdout: string }) => error);
  return stdout;
}

async function isOnPage({ id, subject }: Wanted, page: Page): Promise<boolean> {
  // The list of all: the line has only the most severe.
  const found = await page
    .locator(`#conditions-list [data-condition="${id}"]`)
    .evaluateAll((chips) => chips.map((chip) => chip.getAttribute('data-subject') ?? ''));
  return found.some((name) => isMeant(subject, name));
}

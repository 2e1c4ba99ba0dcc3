import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { CONDITIONS } from '#conditions';
import { openSignedIn } from '#testkit/dashboard/page.ts';
import { startBrowser } from '#testkit/programs/browser.ts';
import { ADMIN_TOKEN, type GatewayProcess } from '#testkit/programs/gateway-process.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import type { Scene } from './scene.ts';
import { SCENES } from './scenes.ts';
import { Stage } from './stage.ts';
import { isShown, SURFACES, type Surface, sentenceOf } from './surfaces.ts';

const USAGE = `npm run lab -- conditions [options]
  Brings about each condition in real processes, and ends it. Prints after how many seconds each surface shows it, and
  shows it no more. Exits with 1 if one takes longer than 15 seconds, or if a condition has no scene.
  --only IDS        these alone, separated by commas
  --fast            those that are part of CI
  --surfaces NAMES  looks at these alone: api, overview, metrics, log, status, page (which needs Chromium)
  --pictures DIR    puts pictures of the dashboard there, wide and narrow, while the condition is on
  --write           writes the table of docs/evidence/conditions.md`;

const values = startProgram(USAGE, {
  only: { type: 'string' },
  fast: { type: 'boolean', default: false },
  surfaces: { type: 'string', default: SURFACES.join(',') },
  pictures: { type: 'string' },
  write: { type: 'boolean', default: false },
});

const LIMIT_MS = 15_000;
/** After that, nothing is waited for any more. */
const GIVE_UP_MS = 60_000;
const POLL_MS = 200;

/** After how many seconds each surface has shown it, or shows it no more; null: not in time. */
type Seconds = Readonly<Partial<Record<Surface, number | null>>>;

interface Result {
  readonly scene: Scene;
  readonly sentence: string;
  readonly shown: Seconds;
  readonly gone: Seconds;
}

const named = values.surfaces.split(',');
const surfaces = SURFACES.filter((surface) => named.includes(surface));
const browser = surfaces.includes('page') ? await startBrowser() : null;
const only = values.only?.split(',');
const wanted = SCENES.filter(({ id, isSlow }) =>
  only === undefined ? !(values.fast && isSlow) : only.includes(id),
);
const rows: string[] = [];
const left: string[] = [];
for (const scene of wanted) {
  const reason = scene.whyNot?.() ?? null;
  if (reason !== null) {
    left.push(`${scene.id}: ${reason}`);
    continue;
  }
  try {
    const result = await playScene(scene, browser);
    rows.push(toRow(result));
    console.log(rows.at(-1));
    if ([...Object.values(result.shown), ...Object.values(result.gone)].some(isTooLate))
      complain(`${scene.id}: too late`);
  } catch (error) {
    complain(`${scene.id}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
await browser?.close();
for (const line of left) console.log(`not played: ${line}`);
const withoutScene = Object.keys(CONDITIONS).filter((id) => !SCENES.some((scene) => scene.id === id));
if (only === undefined && withoutScene.length > 0) complain(`without a scene: ${withoutScene.join(', ')}`);
if (values.write && process.exitCode === undefined) write();

function complain(problem: string): void {
  console.error(`FAILED ${problem}`);
  process.exitCode = 1;
}

async function playScene(scene: Scene, openBrowser: Browser | null): Promise<Result> {
  await using stage = await Stage.open();
  const { gateway, bring, mend } = await scene.play(stage);
  const context = await openBrowser?.newContext();
  try {
    const page = (await context?.newPage()) ?? null;
    if (page !== null) await openSignedIn(page, gateway.adminUrl, ADMIN_TOKEN);
    if (bring !== undefined && (await sentenceOf(scene, gateway)) !== null)
      throw new Error('it is on before anything is wrong');
    await bring?.();
    const shown = await waitFor(true, scene, gateway, page);
    const sentence = (await sentenceOf(scene, gateway)) ?? '';
    if (page !== null && values.pictures !== undefined) await takePictures(page, scene, values.pictures);
    await mend?.();
    const gone = mend !== undefined && endsInTime(scene) ? await waitFor(false, scene, gateway, page) : {};
    return { scene, sentence, shown, gone };
  } finally {
    await context?.close();
  }
}

/** Pictures of the top of the dashboard, and of what the chip opens. */
async function takePictures(page: Page, { id }: Scene, folder: string): Promise<void> {
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await page.screenshot({ path: join(folder, `${id}-${width}.png`) });
    await page.locator(`#conditions [data-condition="${id}"]`).first().click();
    await page.screenshot({ path: join(folder, `${id}-${width}-opened.png`) });
    await page.keyboard.press('Escape');
  }
}

/** Whether it ends soon after it was mended: what happened in a moment is shown for longer. */
function endsInTime({ id }: Scene): boolean {
  const { lastsMs } = CONDITIONS[id];
  return lastsMs === null || lastsMs < LIMIT_MS;
}

/** Looks at all surfaces until each shows the condition, or none does. */
async function waitFor(
  isWanted: boolean,
  scene: Scene,
  gateway: GatewayProcess,
  page: Page | null,
): Promise<Seconds> {
  const startedMs = performance.now();
  const seconds: Partial<Record<Surface, number | null>> = {};
  const missing = () =>
    surfaces.filter((surface) => surface !== scene.without && seconds[surface] === undefined);
  while (missing().length > 0 && performance.now() - startedMs < GIVE_UP_MS) {
    // The command is a process of its own: it is asked when all others have told.
    const next = missing().length > 1 ? missing().filter((surface) => surface !== 'status') : missing();
    for (const surface of next) {
      if ((await isShown(surface, scene, gateway, page)) === isWanted)
        seconds[surface] = (performance.now() - startedMs) / 1000;
    }
    await sleep(POLL_MS);
  }
  for (const surface of missing()) seconds[surface] = null;
  return seconds;
}

function isTooLate(seconds: number | null | undefined): boolean {
  return seconds === null || (seconds !== undefined && seconds * 1000 > LIMIT_MS);
}

function toRow({ scene: { id }, sentence, shown, gone }: Result): string {
  const cells = surfaces.map((surface) => `${toText(shown[surface])} / ${toText(gone[surface])}`);
  return `| \`${id}\` | ${sentence.replaceAll('|', '\\|')} | ${cells.join(' | ')} |`;
}

function toText(seconds: number | null | undefined): string {
  return seconds === null || seconds === undefined ? '–' : seconds.toFixed(1);
}

function write(): void {
  const { date, commit, machine } = readCircumstances();
  const text = [
    `Measured on ${date} at commit ${commit}, with Node ${process.version} on ${machine}.`,
    '',
    `| condition | what it said | ${surfaces.map((surface) => `${surface}, s`).join(' | ')} |`,
    `|---|---|${surfaces.map(() => '---').join('|')}|`,
    ...rows,
    ...left.map((line) => `\nNot played: ${line}.`),
  ].join('\n');
  replaceBetween('docs/evidence/conditions.md', '<!-- conditions -->', '<!-- end of conditions -->', text);
}

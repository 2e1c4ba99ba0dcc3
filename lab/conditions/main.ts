import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { CONDITIONS } from '#conditions';
import { useGatewayBundle } from '#testkit/bundle/gateway-bundle.ts';
import { openSignedIn } from '#testkit/dashboard/page.ts';
import { startBrowser } from '#testkit/programs/browser.ts';
import { ADMIN_TOKEN, type GatewayProcess } from '#testkit/programs/gateway-process.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import type { Scene } from './scene.ts';
import { SCENES } from './scenes.ts';
import { Stage } from './stage.ts';
import { isShown, readStatus, SURFACES, type Surface, sentenceOf } from './surfaces.ts';

const USAGE = `npm run lab -- conditions [options]
  Brings about each condition in real processes, and ends it. Prints after how many seconds each surface shows it, and
  shows it no more. A scene that takes longer than 15 seconds, or fails, is played once more at the
  end. Exits with 1 if it does so again, or if a condition has no scene.
  --only IDS        these alone, separated by commas
  --fast            those that are part of CI, several at once; none is too late within a minute
  --surfaces NAMES  looks at these alone: api, overview, metrics, log, status, page (which needs Chromium)
  --pictures DIR    puts pictures of the dashboard there, wide and narrow, and what the command status says
  --write           writes the table of docs/evidence/conditions.md, if all are played`;

const values = startProgram(USAGE, {
  only: { type: 'string' },
  fast: { type: 'boolean', default: false },
  surfaces: { type: 'string', default: SURFACES.join(',') },
  pictures: { type: 'string' },
  write: { type: 'boolean', default: false },
});

const PROMISED_MS = 15_000;
/** After that, nothing is waited for any more. */
const GIVE_UP_MS = 60_000;
/** What CI runs shows that each surface tells it, not how soon: its machine may be busy. */
const LIMIT_MS = values.fast ? GIVE_UP_MS : PROMISED_MS;
const AT_ONCE = values.fast ? 6 : 1;
const POLL_MS = 200;

/** After how many seconds each surface has shown it, or shows it no more; null: not in time. */
type Seconds = Readonly<Partial<Record<Surface, number | null>>>;

interface Result {
  readonly scene: Scene;
  readonly sentence: string;
  readonly shown: Seconds;
  readonly gone: Seconds;
}

await useGatewayBundle();
const named = values.surfaces.split(',');
const surfaces = SURFACES.filter((surface) => named.includes(surface));
const browser = surfaces.includes('page') ? await startBrowser() : null;
const only = values.only?.split(',');
const wanted = SCENES.filter(({ id, isSlow }) =>
  only === undefined ? !(values.fast && isSlow) : only.includes(id),
);
const rows = new Map<Scene, string>();
/** The folder of a scene: it is another one each time. */
const IN_STAGE = /[\w/.-]*\/spangate-conditions-\w+\/(?:[\w.-]+\/)*/g;
const left: string[] = [];
const waiting = [...wanted];
const repeated = new Set<Scene>();
await Promise.all(Array.from({ length: AT_ONCE }, playWaiting));
await browser?.close();
for (const line of left) console.log(`not played: ${line}`);
const withoutScene = Object.keys(CONDITIONS).filter((id) => !SCENES.some((scene) => scene.id === id));
if (only === undefined && withoutScene.length > 0) complain(`without a scene: ${withoutScene.join(', ')}`);
if (values.write && wanted.length === SCENES.length && process.exitCode === undefined) write();

/** Plays one scene after another until none is left. */
async function playWaiting(): Promise<void> {
  for (let scene = waiting.shift(); scene !== undefined; scene = waiting.shift()) {
    const reason = scene.whyNot?.() ?? null;
    if (reason === null) await playAndTell(scene);
    else left.push(`${scene.id}: ${reason}`);
  }
}

/** Something else on this machine may have held it up, so a scene gets a second chance, as the last of all. */
async function playAndTell(scene: Scene): Promise<void> {
  const problem = await findProblem(scene);
  if (problem === null) return;
  if (repeated.has(scene)) return complain(`${scene.id}: ${problem}`);
  console.log(`again later: ${scene.id}: ${problem}`);
  repeated.add(scene);
  waiting.push(scene);
}

/** Plays a scene, and prints its row. Null: all was well. */
async function findProblem(scene: Scene): Promise<string | null> {
  try {
    const result = await playScene(scene, browser);
    const row = toRow(result);
    rows.set(scene, row);
    console.log(row);
    return [...Object.values(result.shown), ...Object.values(result.gone)].some(isTooLate)
      ? 'too late'
      : null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

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
    const looks = [waitFor(true, scene, gateway, page), untilSentence(scene, gateway)] as const;
    const [shown, sentence] = await Promise.all(looks);
    if (page !== null && values.pictures !== undefined)
      await takePictures(page, scene, gateway, values.pictures);
    await mend?.();
    const gone = mend !== undefined && endsInTime(scene) ? await waitFor(false, scene, gateway, page) : {};
    return { scene, sentence, shown, gone };
  } finally {
    await context?.close();
  }
}

/** What it says as soon as it is on: it may be over before all surfaces have shown it. Empty: it does not come in time. */
async function untilSentence(scene: Scene, gateway: GatewayProcess): Promise<string> {
  for (const startedMs = performance.now(); performance.now() - startedMs < GIVE_UP_MS; ) {
    const sentence = await sentenceOf(scene, gateway);
    if (sentence !== null) return sentence;
    await sleep(POLL_MS);
  }
  return '';
}

/** Pictures of the top of the dashboard, and of what the chip opens; and what `gateway status` says. */
async function takePictures(
  page: Page,
  { id }: Scene,
  gateway: GatewayProcess,
  folder: string,
): Promise<void> {
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await page.screenshot({ path: join(folder, `${id}-${width}.png`) });
    await page.locator(`#conditions [data-condition="${id}"]`).first().click();
    await page.screenshot({ path: join(folder, `${id}-${width}-opened.png`) });
    await page.keyboard.press('Escape');
  }
  await writeFile(join(folder, `${id}-status.txt`), await readStatus(gateway, '--verbose'));
}

/** Whether it ends soon after it was mended: what happened in a moment is shown for longer. */
function endsInTime({ id }: Scene): boolean {
  const { lastsMs } = CONDITIONS[id];
  return lastsMs === null || lastsMs < PROMISED_MS;
}

/**
 * Looks at all surfaces until each shows the condition, or none does. The time of a surface is that at which the look
 * began that showed it so: on a busy machine a command and a page take seconds to come.
 */
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
      const askedMs = performance.now();
      if ((await isShown(surface, scene, gateway, page)) === isWanted)
        seconds[surface] = (askedMs - startedMs) / 1000;
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
  const said = sentence.replaceAll(IN_STAGE, '').replaceAll('|', '\\|');
  return `| \`${id}\` | ${said} | ${cells.join(' | ')} |`;
}

function toIds(scenes: Iterable<Scene>): string {
  return [...scenes].map(({ id }) => `\`${id}\``).join(', ');
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
    ...wanted.flatMap((scene) => rows.get(scene) ?? []),
    ...left.map((line) => `\nNot played: ${line}.`),
    ...(repeated.size === 0
      ? []
      : [`\nPlayed twice, because the first time failed or took longer: ${toIds(repeated)}.`]),
  ].join('\n');
  replaceBetween('docs/evidence/conditions.md', '<!-- conditions -->', '<!-- end of conditions -->', text);
}

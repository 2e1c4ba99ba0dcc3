import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { toOneLine } from '#cli/terminal';
import { CONDITIONS, ConditionBoard, type ConditionDefinition, type Finding } from '#conditions';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { toChip, toKey } from '../../../src/admin/dashboard/page/conditions/condition.js';
import { invoke } from '../../cli/invoke.ts';

/** A name that would have an effect on a terminal, a page, a log or an exposition that took it as it is. */
const RAW = '<img src=x onerror=alert(1)>\u001b[2J\u202e"evil\\\n\u2028\ud800name';

/** The same as every surface has it. */
const SUBJECT = '<img src=x onerror=alert(1)>[2J"evil\\\ufffdname';

/** What no surface may show: controls, those for bidirectional text, separators of lines, half a character. */
const HARMFUL = /(?!\n)[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}]/u;

/** Longer than any condition waits until it is told, or until its end is, and shorter than any that lasts. */
const STEP_MS = 60_000;

const IDS = Object.keys(CONDITIONS) as Finding['id'][];

const MADE = {
  text: '<b>made\u001b[31m\u202e</b>',
  count: 3,
  share: 0.3,
  seconds: 30,
  bytes: 2_048,
  ratio: 2,
} as const;

function makeFinding(id: Finding['id']): Finding {
  const { figures }: ConditionDefinition = CONDITIONS[id];
  const made = Object.fromEntries(Object.entries(figures).map(([name, kind]) => [name, MADE[kind]]));
  return { id, subject: RAW, figures: made } as unknown as Finding;
}

let gateway: StartedGateway;
let board: ConditionBoard;
const ended = new AsyncDisposableStack();

beforeAll(async () => {
  // Nothing is wrong but what a test raises.
  vi.spyOn(ConditionBoard.prototype, 'add').mockReturnValue();
  const starting = vi.spyOn(ConditionBoard.prototype, 'start');
  const replica = ended.use(await startFakeReplica({ name: 'a' }));
  gateway = ended.use(await startGateway({ replicas: [replica] }));
  const [started] = starting.mock.contexts;
  if (!(started instanceof ConditionBoard)) throw new Error('the gateway has started no board');
  board = started;
});

afterAll(async () => {
  await ended.disposeAsync();
  vi.restoreAllMocks();
});

/** Lets the board look as if so many steps had passed, so that nobody waits as long as a condition does. */
function lookAhead(steps: number): void {
  const now = performance.now();
  using clock = vi.spyOn(performance, 'now');
  clock.mockReturnValue(now + steps * STEP_MS);
  board.look();
}

interface Answer {
  readonly conditions: readonly (Parameters<typeof toChip>[0] & { readonly id: string })[];
}

/** What each surface tells of the subject: the ids, or texts that only the one condition has. */
async function askSurfaces() {
  const ask = async (path: string) => await gateway.admin(path);
  const ofSubject = ({ conditions }: Answer) => conditions.filter(({ subject }) => subject === SUBJECT);
  const listed = ofSubject((await (await ask('/admin/conditions')).json()) as Answer);
  const shown = ofSubject((await (await ask('/admin/overview')).json()) as Answer);
  const exposition = await (await ask('/metrics')).text();
  const series = exposition.matchAll(
    /^gateway_condition\{id="(\w+)",severity="(\w+)",subject="((?:[^"\\\n]|\\.)*)"\} 1$/gm,
  );
  const status = await invoke(['status', '--admin', gateway.adminUrl], { SVC_ADMIN_TOKEN: ADMIN_TOKEN });
  const log = gateway.logLines
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
    .findLast((line) => Object.values(line).includes(SUBJECT));
  return {
    api: listed.map(({ id, severity, sentence }) => ({ id, severity, sentence })),
    page: shown.map((condition) => ({ ...toChip(condition), isKeyed: toKey(condition).endsWith(SUBJECT) })),
    metrics: [...series]
      .filter(([, , , subject = '']) => toLabel(subject) === SUBJECT)
      .map(([, id, severity]) => ({ id, severity })),
    status: status.stdout.split('\n').filter((line) => line.includes(toOneLine(SUBJECT))),
    exitCode: status.exitCode,
    log: log === undefined ? null : { id: log.condition, message: log.msg, level: log.level },
  };
}

/** The value of a label, of which an exposition escapes `\\`, `"` and the line feed. */
function toLabel(escaped: string): string {
  return escaped.replaceAll(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}

const EXIT_CODES = { critical: 2, warning: 1, notice: 0 } as const;
const LEVELS = { critical: 50, warning: 40, notice: 30 } as const;

test.each(IDS)('%s is told by every surface while it is on, and by none when it is over', async (id) => {
  const { severity, subject: kind }: ConditionDefinition = CONDITIONS[id];
  board.raise(makeFinding(id));
  lookAhead(1);
  const on = await askSurfaces();
  const [{ sentence } = { sentence: '' }] = on.api;
  expect(sentence).not.toMatch(/[{}]/);
  expect(on).toEqual({
    api: [{ id, severity, sentence }],
    page: [
      {
        key: `${id} ${SUBJECT}`,
        isKeyed: true,
        severity,
        word: severity.charAt(0).toUpperCase() + severity.slice(1),
        text: expect.stringMatching(new RegExp(`${RegExp.escape(sentence.slice(1))}$`)),
      },
    ],
    metrics: [{ id, severity }],
    status: [expect.stringMatching(new RegExp(`^${severity} +${kind} <img.* {2}\\d+[sm]$`))],
    exitCode: EXIT_CODES[severity],
    log: { id, message: sentence, level: LEVELS[severity] },
  });
  expect(on.status[0]).toContain(toOneLine(sentence));

  board.clear(id, RAW);
  lookAhead(2);
  expect(await askSurfaces()).toEqual({
    api: [],
    page: [],
    metrics: [],
    status: [],
    exitCode: 0,
    log: { id, message: `over: ${sentence}`, level: 30 },
  });
});

test('what is harmful in names and figures, and what is too long, reaches no surface', async () => {
  const long = `${RAW}${'a\u0007\u2066'.repeat(100_000)}`;
  board.raise({ id: 'state_not_stored', subject: long, figures: { reason: `\u009b31m${long}` } });
  lookAhead(1);
  const answers = await Promise.all(
    ['/admin/conditions', '/admin/overview', '/metrics'].map(async (path) =>
      (await gateway.admin(path)).text(),
    ),
  );
  const status = await invoke(['status', '--admin', gateway.adminUrl], { SVC_ADMIN_TOKEN: ADMIN_TOKEN });
  const line = gateway.logLines.findLast((each) => each.includes('state_not_stored')) ?? '';
  for (const text of [...answers.map(toDecoded), status.stdout, toDecoded(line)]) {
    expect(text).toContain('"evil');
    expect(HARMFUL.exec(text)).toBeNull();
    expect(text).not.toContain('a'.repeat(2_049));
  }
  board.clear('state_not_stored', long);
  lookAhead(2);
  expect((await askSurfaces()).api).toEqual([]);
});

/** The text with what JSON has escaped as it is; the marks stay escaped. */
function toDecoded(json: string): string {
  return json
    .replaceAll(/\\u([\da-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replaceAll('\\"', '"');
}

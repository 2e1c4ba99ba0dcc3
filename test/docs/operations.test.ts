import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { FROM_ELSEWHERE, findLogMessages, type LogMessage, readLogMessages } from './log-messages.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Calls that only pass a message on, and what they log. */
const PASSED_ON: Readonly<Record<string, readonly string[]>> = {
  // From src/config/secrets/admin-tokens.ts.
  'src/cli/serve/quickstart/quickstart.ts': [
    '… has white space around it, which is ignored',
    '… has fewer than … characters: it can be guessed',
  ],
  'src/cli/serve/serve.ts': [],
  // The sentences of src/conditions/registry/conditions.yaml.
  'src/gateway/composition/board.ts': [],
  // The steps of requests.
  'src/proxy/step-log.ts': [],
  // The lines of the workers.
  'src/gateway/serving/workers/worker-group.ts': [],
  // What OpenTelemetry's reader of variables says.
  'otel/collector/otlp-options.ts': ['Configuration: …'],
};

/** The lines that the page names, row by row. */
async function readRows(): Promise<readonly (readonly string[])[]> {
  const page = await readFile(join(ROOT, 'docs/messages.md'), 'utf8');
  const section = /^## Logs\n([\s\S]*)/m.exec(page)?.[1] ?? '';
  return [...section.matchAll(/^\| (`.*?) \|/gm)].map(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, line = '']) => line),
  );
}

/** The rows that have the message: literally, or else by a line with a part that varies. */
function rowsOf(text: string, rows: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const literal = rows.filter((lines) => lines.includes(text));
  return literal.length > 0 ? literal : rows.filter((lines) => lines.some((line) => stands(line, text)));
}

function stands(line: string, text: string): boolean {
  const [beginning = ''] = line.split('…');
  return text.startsWith(beginning) && toPattern(line).test(text);
}

function toPattern(line: string): RegExp {
  const parts = line.split('…').map((part) => RegExp.escape(part));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

async function readMessages(): Promise<readonly LogMessage[]> {
  const found = await readLogMessages(ROOT);
  const passedOn = new Set(found.filter(({ text }) => text === FROM_ELSEWHERE).map(({ file }) => file));
  expect([...passedOn].toSorted()).toEqual(Object.keys(PASSED_ON).toSorted());
  const known = Object.entries(PASSED_ON).flatMap(([file, texts]) => texts.map((text) => ({ text, file })));
  return [...found.filter(({ text }) => text !== FROM_ELSEWHERE), ...known];
}

let messages: readonly LogMessage[];
let rows: readonly (readonly string[])[];

beforeAll(async () => {
  messages = await readMessages();
  rows = await readRows();
});

test('docs/messages.md: each message that the code logs has exactly one row', () => {
  expect(messages.length).toBeGreaterThan(100);
  const wrong = messages.filter(({ text }) => rowsOf(text, rows).length !== 1);
  expect(wrong.map(({ text, file }) => `${file}: ${text}: ${rowsOf(text, rows).length} rows`)).toEqual([]);
});

test('docs/messages.md: each line of the log that the page names is one that the code logs', () => {
  const lines = rows.flat();
  expect(lines.filter((line, index) => lines.indexOf(line) !== index)).toEqual([]);
  expect(lines.filter((line) => !messages.some(({ text }) => stands(line, text)))).toEqual([]);
});

test.each([
  ["log.info({}, 'begun')", ['begun']],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: code that is read
  ['this.#log.warn({ name }, `replica ${name}: gone`)', ['replica …: gone']],
  ["const { log } = all;\nlog.error({}, isLate ? 'late' : 'lost')", ['late', 'lost']],
  ["const TEXTS = { a: 'one', b: 'two' };\nlog[level]({}, TEXTS[key])", ['one', 'two']],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: code that is read
  ["const why = isFull ? 'full' : 'slow';\nlog.warn(`lost: ${why}`)", ['lost: full', 'lost: slow']],
  ["function set(action: 'drain' | 'undrain') { log.info({}, action); }", ['drain', 'undrain']],
  ['for (const warning of warnings) log.warn(warning);', [FROM_ELSEWHERE]],
  ["dialect.error('no call of a log'); catalog.info('nor this')", []],
])('the messages of %s are found', (code, messages) => {
  expect(findLogMessages(code)).toEqual(messages);
});

import type { Paint, Style } from '#cli/terminal';

/** Formats a line of the log. It is given as JSON, both with their line ends. */
export type LineFormat = (jsonLine: string) => string;

/**
 * Formats lines for people: the time in UTC, the level, the message, the fields as `key=value`. An error has lines of its
 * own below. It starts from the JSON, so that both forms say the same.
 */
export function createTextFormat(paint: Paint = (text) => text): LineFormat {
  return (jsonLine) => {
    const { time, level, msg, err, ...fields } = JSON.parse(jsonLine) as Record<string, unknown>;
    const error = toErrorLines(err, '');
    const shownFields = Object.entries(error === null && err !== undefined ? { ...fields, err } : fields);
    const parts = [
      paint(String(time), 'dim'),
      paint(String(level).toUpperCase().padEnd(5), STYLES.get(level) ?? null),
      ...(msg === undefined ? [] : [harmless(String(msg))]),
      ...shownFields.map(([key, value]) => `${paint(`${harmless(key)}=`, 'dim')}${toValueText(value)}`),
    ];
    return [parts.join(' '), ...(error ?? [])].map((line) => `${line}\n`).join('');
  };
}

const STYLES: ReadonlyMap<unknown, Style> = new Map([
  ['fatal', 'red'],
  ['error', 'red'],
  ['warn', 'yellow'],
  ['debug', 'dim'],
  ['trace', 'dim'],
]);

/** A text as it is, if it cannot be mistaken for anything else; everything else as JSON. */
function toValueText(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=[\]{}\\]+$/.test(value)) return harmless(value);
  return harmless(JSON.stringify(value));
}

/** The lines of a loggable error and its causes; null: it is none. */
function toErrorLines(error: unknown, label: string): readonly string[] | null {
  if (typeof error !== 'object' || error === null || !('name' in error)) return null;
  const { name, stack, cause, ...others } = error as Record<string, unknown>;
  const frames = Array.isArray(stack) ? stack.map(String) : [];
  const fields = Object.entries(others).map(([key, value]) => ` ${harmless(key)}=${toValueText(value)}`);
  return [
    `    ${label}${harmless(String(name))}${fields.join('')}`,
    ...frames.map((frame) => `      ${harmless(frame)}`),
    ...(toErrorLines(cause, 'caused by ') ?? []),
  ];
}

/** Characters with an effect on a terminal. JSON escapes only some of them. */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

function harmless(text: string): string {
  return text.replace(CONTROLS, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

import type { Log } from '#otel/base';

/** One line of a log. */
export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly fields: object;
  readonly message: string;
}

/** A log that keeps its lines for the test to read. */
export function createQuietLog(): Log & { readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  const write =
    (level: LogLine['level']) =>
    (fields: object, message: string): void => {
      lines.push({ level, fields, message });
    };
  return { lines, info: write('info'), warn: write('warn'), error: write('error') };
}

import pino from 'pino';
import type { Invocation, TextSink } from '#cli/command';
import { createPaint } from '#cli/terminal';
import type { Config } from '#config';
import { toLoggableError } from './loggable-error.ts';
import { createTextFormat } from './text-line.ts';

/** `isForNewcomers`: of the lines at level info only conditions, and of conditions only the sentence and the id. */
interface LoggerSettings extends Pick<Config['log'], 'level' | 'format'> {
  readonly isForNewcomers?: boolean;
}

/**
 * Creates a logger of JSON lines: the level as a word, RFC 3339 time, errors under `err` without their messages. Where
 * people read them it writes lines of text, with the same content.
 */
export function createLogger(
  { level, format, isForNewcomers = false }: LoggerSettings,
  output: TextSink,
  env: Invocation['env'],
): pino.Logger {
  const isText = format === 'text' || (format === 'auto' && output.isTTY === true);
  const destination = isText ? toTextDestination(output, env) : output;
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: toLoggableError },
      hooks: isForNewcomers ? { logMethod: logForNewcomers } : {},
    },
    destination,
  );
}

const logForNewcomers: NonNullable<NonNullable<pino.LoggerOptions['hooks']>['logMethod']> = function log(
  this: pino.Logger,
  [fields, message, ...rest],
  method,
  level,
) {
  const isCondition = typeof fields === 'object' && fields !== null && 'condition' in fields;
  if (isCondition) method.call(this, { condition: fields.condition }, message);
  else if (level !== pino.levels.values.info) method.call(this, fields, message, ...rest);
};

function toTextDestination(output: TextSink, env: Invocation['env']): pino.DestinationStream {
  // Its own lines go to standard error as well, which may be a file: they have no colours.
  output.formatOwnLines?.(createTextFormat());
  const toText = createTextFormat(createPaint(output, env));
  return { write: (line) => void output.write(toText(line)) };
}

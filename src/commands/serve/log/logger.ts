import pino from 'pino';
import type { Config } from '../../../config/config.ts';
import { toLoggableError } from './loggable-error.ts';

/** Creates a logger of JSON lines: the level as a word, RFC 3339 time, errors under `err` without their messages. */
export function createLogger(
  level: Config['log']['level'],
  destination: pino.DestinationStream,
): pino.Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: toLoggableError },
    },
    destination,
  );
}

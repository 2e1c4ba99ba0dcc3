import pino from 'pino';
import type { Config } from '../../config/config.ts';
import { toLoggableError } from './loggable-error.ts';

/** A logger of JSON lines: level as a word, RFC 3339 time, errors under `err` as `toLoggableError` has them. */
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

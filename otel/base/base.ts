/*
 * The ground floor of the library: the clock, files that are written durably and read with a bound, names to show,
 * errors and log.
 *
 * It never knows a record.
 * Each file stands alone.
 */

export { type Clock, systemClock, waitAtMost } from './clock.ts';
export { TelemetryError, TelemetrySettingError, toErrorCode } from './errors.ts';
export {
  DIRECTORY_MODE,
  FILE_MODE,
  isErrno,
  OddFileError,
  openRegularFile,
  readRegularFile,
} from './regular-file.ts';
export { toShownName, withoutControls } from './shown-name.ts';
export type { TelemetryLog } from './telemetry-log.ts';
export { writeDurably } from './write-durably.ts';

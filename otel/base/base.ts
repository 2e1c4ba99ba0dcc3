/*
 * The ground floor of the library: the clock, names to show, errors and log.
 *
 * It never knows a record.
 * Each file stands alone.
 */

export { type Clock, systemClock, waitAtMost } from './clock.ts';
export { TelemetryError, TelemetrySettingError, toErrorCode } from './errors.ts';
export { type ServerAddress, toServerAddress } from './server-address.ts';
export { toShownName, withoutControls } from './shown-name.ts';
export type { TelemetryLog } from './telemetry-log.ts';

/**
 * Telemetry cannot start: an endpoint that is no URL, a certificate that cannot be read, a directory that cannot
 * be written. `message` is one line for the operator, without addresses (they may hold credentials); `cause` may
 * hold the system's error.
 */
export class TelemetryError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'TelemetryError';
  }
}

/**
 * Telemetry cannot start: an endpoint that is no URL, a certificate that cannot be read, a directory that cannot be
 * written. `message` is one line for the operator, without addresses, which may hold credentials. `cause` may hold the
 * system's error.
 */
export class TelemetryError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'TelemetryError';
  }
}

/** A variable, an address, a header or a certificate for the export cannot be used. */
export class TelemetrySettingError extends TelemetryError {
  override readonly name = 'TelemetrySettingError';
}

/** The code of a system error, for example `ENOSPC`; else `fallback`. Never its message, which may hold a path or an address. */
export function toErrorCode(error: unknown, fallback = 'unknown'): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : fallback;
}

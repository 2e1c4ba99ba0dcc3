/** Where telemetry logs its own problems. A pino logger fits. */
export interface TelemetryLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

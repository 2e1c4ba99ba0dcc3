/*
 * The telemetry of a gateway: starts and stops the way of a record from its span to the collector.
 *
 * It never imports src/.
 * Begin with start-telemetry.ts, then span/, queue/ and export/.
 */

export {
  type ExportTrouble,
  openExporter,
  startTelemetry,
  type Telemetry,
  type TelemetrySettings,
} from './start-telemetry.ts';

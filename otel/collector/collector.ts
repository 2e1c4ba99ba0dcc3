/*
 * Where telemetry is sent: the address, the protocol, the headers and the certificates of the collector, and advice about them.
 *
 * It never makes a call.
 * Begin with otlp-options.ts.
 */

export { adviseOnCollector, toShownAddress } from './collector-advice.ts';
export { CollectorHeaders, type HeaderTexts } from './collector-headers.ts';
export { type ConfiguredCollector, type OtlpOptions, readOtlpOptions } from './otlp-options.ts';
export { CONTENT_TYPES, type OtlpProtocol } from './otlp-protocol.ts';

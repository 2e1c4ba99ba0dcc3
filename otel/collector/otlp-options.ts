import { X509Certificate } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import type { Agent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { createSecureContext } from 'node:tls';
import { diag } from '@opentelemetry/api';
import { getStringFromEnv } from '@opentelemetry/core';
import { convertLegacyHttpOptions } from '@opentelemetry/otlp-exporter-base/node-http';
import { type Log, TelemetrySettingError } from '#otel/base';
import { CollectorHeaders, checkHeaders, NO_HEADER_TEXTS, type Signal } from './collector-headers.ts';
import { CONTENT_TYPES, DEFAULT_PROTOCOL, isOtlpProtocol, type OtlpProtocol } from './otlp-protocol.ts';

/** How to reach the collector. */
export interface OtlpOptions {
  readonly url: URL;
  readonly protocol: OtlpProtocol;
  /** The headers of a call that begins now, with the Content-Type of the protocol. Never rejects. */
  readonly headers: () => Promise<Record<string, string>>;
  /** The deadline of a whole call. */
  readonly timeoutMs: number;
  readonly compression: 'none' | 'gzip';
  /** Keeps connections alive, and holds the certificates. */
  readonly agent: Agent;
  /** Creates another agent with the same options. */
  readonly createAgent: () => Promise<Agent>;
}

/** What the configuration says. It takes precedence over the variables. */
export interface ConfiguredCollector {
  /** A base URL: `v1/traces` or `v1/metrics` is appended. */
  readonly endpoint?: string | null;
  readonly protocol?: OtlpProtocol | null;
  /** Headers beside those of the variables. */
  readonly headers?: CollectorHeaders | undefined;
}

/**
 * Reads the OTEL_EXPORTER_OTLP_* variables with the OTLP exporter's own reader (OpenTelemetry specification, "OTLP
 * Exporter Configuration"), except for what is configured. For a value that it cannot use, the reader logs a warning and
 * uses a default. Where that would send records to the wrong place or without a certificate, this throws a
 * TelemetrySettingError instead.
 */
export async function readOtlpOptions(
  configured: ConfiguredCollector,
  log: Log,
  signal: Signal = 'traces',
): Promise<OtlpOptions> {
  const { endpoint } = configured;
  const protocol = configured.protocol ?? readProtocol(signal, log);
  const { headers: configuredHeaders = new CollectorHeaders(NO_HEADER_TEXTS) } = configured;
  if (endpoint == null) checkAddresses(signal);
  checkFiles(signal);
  const path = `v1/${signal}`;
  const base = endpoint ?? findCorrectedBase(signal, log);
  const url = base === undefined ? undefined : toSignalUrl(base, path);
  const required = { 'Content-Type': CONTENT_TYPES[protocol], 'User-Agent': 'spangate' };
  const options = withWarnings(log, () =>
    convertLegacyHttpOptions(
      { ...(url === undefined ? {} : { url }), headers: async () => ({ ...configuredHeaders.of(signal) }) },
      signal.toUpperCase(),
      path,
      required,
    ),
  );
  const { headers } = options;
  checkHeaders(await headers());
  const signalUrl = new URL(options.url);
  const createAgent = async () => await options.agentFactory(signalUrl.protocol);
  const agent = await createAgent();
  checkCertificates(agent);
  const compression = options.compression === 'gzip' ? 'gzip' : 'none';
  const timeoutMs = options.timeoutMillis;
  return { url: signalUrl, protocol, headers, timeoutMs, compression, agent, createAgent };
}

/** The signal's own variable and the general one, in order of precedence. */
function variables(signal: Signal, suffix: string): readonly string[] {
  return [`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${suffix}`, `OTEL_EXPORTER_OTLP_${suffix}`];
}

/** The protocol of the first variable that is set. Any that the gateway does not have is a warning, and the default. */
function readProtocol(signal: Signal, log: Log): OtlpProtocol {
  for (const variable of variables(signal, 'PROTOCOL')) {
    const protocol = getStringFromEnv(variable)?.trim();
    if (protocol === undefined) continue;
    if (isOtlpProtocol(protocol)) return protocol;
    log.warn(
      { variable, protocol },
      `the gateway does not have this protocol: ${signal} are sent as ${DEFAULT_PROTOCOL}`,
    );
    break;
  }
  return DEFAULT_PROTOCOL;
}

function checkAddresses(signal: Signal): void {
  for (const variable of variables(signal, 'ENDPOINT')) {
    const address = getStringFromEnv(variable);
    if (address !== undefined && parseHttpUrl(address) === undefined) {
      throw new TelemetrySettingError(
        `${variable} is not an http or https URL, such as http://localhost:4318`,
      );
    }
  }
}

/** OTEL_EXPORTER_OTLP_ENDPOINT without the path that is appended to it, if it has one already and counts. */
function findCorrectedBase(signal: Signal, log: Log): string | undefined {
  const [own = '', variable = ''] = variables(signal, 'ENDPOINT');
  if (getStringFromEnv(own) !== undefined) return undefined;
  const url = parseHttpUrl(getStringFromEnv(variable) ?? '');
  const [path, signalPath] =
    /^(.*)(\/v1\/(?:traces|metrics|logs))\/*$/.exec(url?.pathname ?? '')?.slice(1) ?? [];
  if (url === undefined || path === undefined) return undefined;
  log.warn({ variable }, `the address ends in ${signalPath}, which is appended to it: it is used without`);
  url.pathname = path;
  return url.href;
}

function toSignalUrl(endpoint: string, path: string): string {
  const url = parseHttpUrl(endpoint);
  if (url === undefined) throw new TelemetrySettingError('the export endpoint is not an http or https URL');
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${path}`;
  return url.href;
}

function parseHttpUrl(text: string): URL | undefined {
  const url = URL.parse(text.trim());
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}

function checkFiles(signal: Signal): void {
  for (const suffix of ['CERTIFICATE', 'CLIENT_CERTIFICATE', 'CLIENT_KEY']) {
    for (const variable of variables(signal, suffix)) {
      const path = getStringFromEnv(variable);
      if (path === undefined) continue;
      try {
        accessSync(path, constants.R_OK);
      } catch (error) {
        throw new TelemetrySettingError(`the file that ${variable} names cannot be read`, error);
      }
    }
  }
}

/** A file without a certificate is readable, but would fail every call. */
function checkCertificates(agent: Agent): void {
  if (!(agent instanceof HttpsAgent)) return;
  const { ca } = agent.options;
  try {
    // createSecureContext ignores a `ca` that is no certificate.
    for (const certificate of [ca].flat()) if (certificate !== undefined) new X509Certificate(certificate);
    createSecureContext(agent.options);
  } catch (error) {
    throw new TelemetrySettingError('the certificates or the key for the export cannot be used', error);
  }
}

/** Runs the reader, and writes its warnings (for example about a time-out that is no number) to our log. */
function withWarnings<Result>(log: Log, read: () => Result): Result {
  const ignore = (): void => undefined;
  const warn = (message: string): void => log.warn({}, message);
  diag.setLogger({ error: warn, warn, info: ignore, debug: ignore, verbose: ignore });
  try {
    return read();
  } finally {
    diag.disable();
  }
}

/** The port that gRPC has by convention. OTLP/HTTP has 4318. */
const GRPC_PORT = '4317';

/** The address of a collector for people: without credentials, query and fragment. */
export function toShownAddress({ origin, pathname }: URL): string {
  return origin + pathname;
}

/**
 * What an operator can do about a failed call, by `http_<status>` or the code of the error. Undefined if nothing is known
 * that is more helpful than the reason itself.
 */
export function adviseOnCollector(reason: string, url: URL): string | undefined {
  const status = Number(/^http_(\d{3})$/.exec(reason)?.[1] ?? 0);
  if (status === 0 || status === 404 || status === 405) {
    if (url.port === GRPC_PORT)
      return 'port 4317 is for gRPC: use the OTLP/HTTP port of the collector, usually 4318';
  }
  if (status >= 300 && status < 400) return 'the address redirects: configure the address that it leads to';
  return ADVICE.get(reason);
}

const WRONG_ADDRESS =
  'nothing takes OTLP at this address: correct the host, port or path of export.endpoint (or OTEL_EXPORTER_OTLP_ENDPOINT)';

const NO_TLS = 'the server does not speak TLS at this port: try http:// instead of https://';

const ADVICE: ReadonlyMap<string, string> = new Map([
  ['http_401', 'the collector wants credentials: set them in OTEL_EXPORTER_OTLP_HEADERS'],
  ['http_403', 'the collector does not accept the credentials: correct OTEL_EXPORTER_OTLP_HEADERS'],
  ['http_404', WRONG_ADDRESS],
  ['http_405', WRONG_ADDRESS],
  [
    'http_415',
    'the collector does not take this encoding: set OTEL_EXPORTER_OTLP_PROTOCOL, or send through an OpenTelemetry Collector',
  ],
  ['ECONNREFUSED', 'nothing listens at this address: start the collector, or correct export.endpoint'],
  ['ENOTFOUND', 'the host name does not resolve: correct export.endpoint'],
  ['EAI_AGAIN', 'the host name cannot be resolved now: look at the name server'],
  ['EPROTO', NO_TLS],
  ['ERR_SSL_WRONG_VERSION_NUMBER', NO_TLS],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'name the certificate in OTEL_EXPORTER_OTLP_CERTIFICATE'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'name the certificate in OTEL_EXPORTER_OTLP_CERTIFICATE'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'name the certificate in OTEL_EXPORTER_OTLP_CERTIFICATE'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'name the certificate in OTEL_EXPORTER_OTLP_CERTIFICATE'],
]);

import type { Log } from '#otel/base';
import { addressOf, type ProbeResult, shakeHands } from '#replicas/probes';
import { type Finding, REASON_TEXTS, type ReachabilityReason } from '#replicas/reachability';
import type { RegisteredReplica } from '#replicas/registry';
import type { ReplicaConfig } from '#replicas/terms';

/** What OpenSSL says of an answer that is not TLS: plain HTTP, nearly always. */
const NOT_TLS_CODES: ReadonlySet<string> = new Set([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_SSL_UNKNOWN_PROTOCOL',
]);

/** The least time between two warnings about a replica that fails now and then. */
const WARNING_INTERVAL_MS = 60_000;

type LoggedReplica = Pick<RegisteredReplica, 'name' | 'config'>;

/** What a probe has shown. */
export interface ProbeFinding {
  /** Why the replica was unreachable or loading before, as far as requests and probes had shown; null: it was not. */
  readonly before: ReachabilityReason | null;
  readonly now: Finding;
  readonly result: ProbeResult;
}

/**
 * Logs why a replica does not answer probes, and what to change: one line for each replica and reason until the reason
 * changes, at level info, because a condition tells that it does not answer. What a request finds out makes a probe follow within seconds, so that there is one line for the whole
 * gateway, whatever the number of workers and requests. Of the url it names only host and port.
 */
export class ReachabilityLog {
  readonly #log: Log<'info' | 'warn'>;
  /** The reason of the last line about a replica that does not answer. */
  readonly #logged = new WeakMap<LoggedReplica, ReachabilityReason>();
  /** When it was last logged that a replica fails now and then: monotonic. */
  readonly #unsteadyLoggedAtMs = new WeakMap<LoggedReplica, number>();
  #isStopped = false;

  constructor(log: Log<'info' | 'warn'>) {
    this.#log = log;
  }

  /** A probe has ended. */
  note(replica: LoggedReplica, { before, now, result }: ProbeFinding): void {
    if (this.#logged.get(replica) === now) return;
    if (now !== 'reachable') {
      this.#logged.set(replica, now);
      void this.#logFailure(replica, now, result);
    } else if (this.#logged.delete(replica)) {
      this.#log.info({ replica: replica.name }, `replica ${replica.name}: it answers now`);
    } else if (before !== null && before !== 'loading_model') {
      this.#logUnsteady(replica, before);
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  #logUnsteady(replica: LoggedReplica, reason: ReachabilityReason): void {
    const nowMs = performance.now();
    if (nowMs - (this.#unsteadyLoggedAtMs.get(replica) ?? Number.NEGATIVE_INFINITY) < WARNING_INTERVAL_MS)
      return;
    this.#unsteadyLoggedAtMs.set(replica, nowMs);
    const { name, config } = replica;
    this.#log.warn(
      { replica: name, reason, ...addressOf(config) },
      `replica ${name}: it fails now and then (${REASON_TEXTS[reason]}), but answers probes`,
    );
  }

  async #logFailure(replica: LoggedReplica, reason: ReachabilityReason, result: ProbeResult): Promise<void> {
    const { name, config } = replica;
    const advice = await adviseOnReplica(config, reason, result);
    if (this.#isStopped) return;
    const fields = { replica: name, reason, ...addressOf(config) };
    const message = `replica ${name}: ${advice}`;
    this.#log.info(fields, message);
  }
}

/** Says in one sentence what was found and what to change. May try a TLS handshake with the server. */
export async function adviseOnReplica(
  config: ReplicaConfig,
  reason: ReachabilityReason,
  result: ProbeResult,
): Promise<string> {
  const speaksTls =
    maySpeakTls(config, reason, result) && (await shakeHands(config).catch(() => null)) !== null;
  const { host, port } = addressOf(config);
  const isSecured = config.url.startsWith('https:');
  return toAdvice(reason, result, { address: `${host}:${port}`, speaksTls, isSecured });
}

/** Says in one sentence what was found and what to change. */
function toAdvice(
  reason: ReachabilityReason,
  result: ProbeResult,
  {
    address,
    speaksTls,
    isSecured,
  }: { readonly address: string; readonly speaksTls: boolean; readonly isSecured: boolean },
): string {
  if (speaksTls) return 'http was answered with TLS: write https:// in its url';
  const code = result.kind === 'failure' ? result.code : '';
  switch (reason) {
    case 'connection_refused':
      return `nothing accepts connections at ${address}: start the server, or correct its url`;
    case 'name_not_resolved':
      return `the host of ${address} does not resolve: correct the host in its url`;
    case 'connect_timeout':
      return `no connection to ${address} in time: check the host and the port in its url, and the network`;
    case 'tls_failed':
      return NOT_TLS_CODES.has(code)
        ? 'https was answered with plain HTTP: write http:// in its url'
        : `TLS failed (${code}): check its certificate, name its authority with tls.ca, and its name with tls.server_name`;
    case 'no_answer':
      return `${address} accepts connections but does not answer: check the server and the port in its url`;
    case 'connection_reset':
      return isSecured
        ? `${address} closes connections without an answer: check the server, and whether it wants a client certificate (tls.cert)`
        : `${address} closes connections without an answer: check the server and the port in its url`;
    case 'not_http':
      return `${address} does not speak HTTP/1.1: correct the port in its url`;
    case 'not_an_engine':
      return `GET /v1/models got ${toAnswerText(result)}: correct its url if it is not that of an inference server`;
    case 'engine_failed':
      return `a probe got ${toAnswerText(result)}: see the log of the engine`;
    case 'loading_model':
      return 'it is loading its model';
  }
}

function toAnswerText(result: ProbeResult): string {
  if (result.kind === 'failure') return 'no answer';
  return result.status === 200 ? 'an answer that is not a list of models' : `status ${result.status}`;
}

/** Whether what came back may be what a TLS server says to plain HTTP. */
function maySpeakTls({ url }: ReplicaConfig, reason: ReachabilityReason, result: ProbeResult): boolean {
  if (!url.startsWith('http:')) return false;
  // nginx says 400 in plain HTTP, Go 400 too; others close the connection or send a TLS alert.
  const isBadRequest = result.kind === 'answer' && result.status === 400;
  return reason === 'connection_reset' || reason === 'not_http' || isBadRequest;
}

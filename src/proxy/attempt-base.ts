import type { Replica } from '../replicas/replica.ts';
import type { Exchange } from './exchange.ts';
import { Failure } from './failure.ts';
import { toUpstreamHeaders } from './headers.ts';
import type { ProxyLog } from './proxy-context.ts';
import type { AttemptRequest } from './send.ts';

/** The part of an attempt that every request has: the client's method, path and headers for this replica. */
export function toAttemptBase(
  exchange: Exchange,
  replica: Replica,
  traceparent: string,
): Pick<AttemptRequest, 'replica' | 'exchange' | 'method' | 'path' | 'headers'> {
  const { request, requestId } = exchange;
  return {
    replica,
    exchange,
    method: request.method === 'GET' ? 'GET' : 'POST',
    path: request.url ?? '/',
    headers: toUpstreamHeaders(request, { requestId, traceparent, apiKey: replica.config.apiKey }),
  };
}

/** Answers a request whose handling threw. Anything but a Failure is a defect of ours, and logged. */
export function failExchange(exchange: Exchange, error: unknown, log: ProxyLog): void {
  if (!(error instanceof Failure)) {
    // The message is left out: it could quote the request.
    const name = error instanceof Error ? error.name : typeof error;
    const stack =
      error instanceof Error ? error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) : [];
    log.error({ error: name, stack }, 'request handling failed');
  }
  exchange.failWith(error);
}

import type { Log } from '#otel/base';
import type { Exchange } from './exchange.ts';
import { Failure } from './failure.ts';

/** Logs where a defect of ours was thrown, without its message, which could quote the request. */
export function logDefect(error: unknown, log: Log<'error'>): void {
  const name = error instanceof Error ? error.name : typeof error;
  const stack = error instanceof Error ? error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) : [];
  log.error({ error: name, stack }, 'request handling failed');
}

/** Answers a request whose handling threw. Any error but a Failure is a defect of ours and logged. */
export function failExchange(exchange: Exchange, error: unknown, log: Log<'error'>): void {
  if (!(error instanceof Failure)) logDefect(error, log);
  try {
    exchange.failWith(error);
  } catch (second) {
    logDefect(second, log);
    exchange.http.destroy();
  }
}

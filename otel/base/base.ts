/*
 * The ground floor of the library: the clock, names to show, errors and log.
 *
 * It never knows a record.
 */

/** The levels of a log that somebody writes to. A pino logger fits. */
export type Log<Level extends 'debug' | 'info' | 'warn' | 'error' = 'info' | 'warn' | 'error'> = {
  readonly [Each in Level]: (fields: object, message: string) => void;
};

/** Where a server is reached, as the conventions have it. */
export interface ServerAddress {
  /** The host; an IPv6 address without brackets. */
  readonly address: string;
  readonly port: number | undefined;
}

/** The host and the port of an absolute URL; the port of its scheme if it has none. */
export function toServerAddress(url: string): ServerAddress {
  const { hostname, port, protocol } = new URL(url);
  return {
    address: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? DEFAULT_PORTS[protocol] : Number(port),
  };
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

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

/** The most UTF-16 units of a name from outside. Longer names are cut. */
const MAX_NAME_CHARS = 256;

/**
 * Characters with an effect on a terminal or page: control characters, which move a terminal's cursor (U+009B begins a
 * sequence like ESC [), bidirectional controls, and line and paragraph separators.
 */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/** Replaces the characters in a text from outside that have an effect on a terminal or page. */
export function withoutControls(text: string, replacement = ''): string {
  return text.replace(CONTROLS, replacement);
}

/** Matches nearly every name, at a tenth of the cost of searching for controls. */
const PLAIN = /^[ -~]*$/;

/** A name to show and export: without controls and lone surrogates, cut to `maxChars` UTF-16 units. */
export function toShownName(name: string, maxChars = MAX_NAME_CHARS): string {
  if (name.length <= maxChars && PLAIN.test(name)) return name;
  const harmless = withoutControls(name);
  return (harmless.length > maxChars ? harmless.slice(0, maxChars) : harmless).toWellFormed();
}

/** Time as a collaborator: tests use a virtual clock. */
export interface Clock {
  /** Milliseconds of a monotonic clock; only differences have a meaning. */
  nowMs(): number;
  /** Resolves after `ms` (never by itself for Infinity), or as soon as the signal is aborted. Never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/**
 * Calls back after `ms`, when what has arrived by then has been read: after a stall of the event loop the awaited answer
 * may be there. Returns what ends it before.
 */
export function startDeadline(ms: number, onDeadline: () => void): () => void {
  let afterReads: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    afterReads = setImmediate(onDeadline);
  }, ms);
  return () => {
    clearTimeout(timer);
    clearImmediate(afterReads);
  };
}

/** The clock of this machine. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),

  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) {
        resolve();
        return;
      }
      const endDeadline = ms === Number.POSITIVE_INFINITY ? undefined : startDeadline(ms, wake);
      // The listener is removed with the sleep: some of these signals live as long as the process.
      signal.addEventListener('abort', wake, { once: true });
      function wake(): void {
        endDeadline?.();
        signal.removeEventListener('abort', wake);
        resolve();
      }
    }),
};

/**
 * Waits for the work, at most `ms`; the work itself goes on. Resolves with its result, or with null if it takes longer.
 * Rejects as the work does.
 */
export async function waitAtMost<T>(
  ms: number,
  work: Promise<T>,
  clock: Clock = systemClock,
): Promise<T | null> {
  const isOver = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(ms, isOver.signal).then(() => null)]);
  } finally {
    isOver.abort();
  }
}

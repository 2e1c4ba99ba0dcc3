import { validateHeaderName, validateHeaderValue } from 'node:http';
import { parseKeyPairsIntoRecord } from '@opentelemetry/core';
import { TelemetrySettingError } from '#otel/base';

/** What is sent. Each signal has its own address and variables. */
export type Signal = 'traces' | 'metrics';

/**
 * Headers for the collector, as OTEL_EXPORTER_OTLP_HEADERS has them (`name=value,…`, percent-encoded): those for all
 * signals, and those of each signal, which take precedence. Empty: none.
 */
export interface HeaderTexts {
  readonly general: string;
  readonly traces: string;
  readonly metrics: string;
}

type Headers = Readonly<Record<string, string>>;

/** The headers that are sent to the collector beside those of the protocol. Values are secret, and can change. */
export class CollectorHeaders {
  #bySignal: Readonly<Record<Signal, Headers>>;

  /** Throws a TelemetrySettingError for a header that cannot be sent. */
  constructor(texts: HeaderTexts) {
    this.#bySignal = parseTexts(texts);
  }

  /** Checks other headers. Throws a TelemetrySettingError; what it returns uses them from the next call on. */
  prepare(texts: HeaderTexts): () => void {
    const next = parseTexts(texts);
    return () => {
      this.#bySignal = next;
    };
  }

  /** The headers for a call that begins now. */
  of(signal: Signal): Headers {
    return this.#bySignal[signal];
  }
}

/** No headers but those that the variables give. */
export const NO_HEADER_TEXTS: HeaderTexts = { general: '', traces: '', metrics: '' };

function parseTexts({ general, traces, metrics }: HeaderTexts): Readonly<Record<Signal, Headers>> {
  const parse = (text: string): Headers => {
    const own = { ...parseKeyPairsIntoRecord(general), ...parseKeyPairsIntoRecord(text) };
    checkHeaders(own);
    return own;
  };
  return { traces: parse(traces), metrics: parse(metrics) };
}

/**
 * Throws a TelemetrySettingError for a header that node:http refuses: it would fail every call. Its value may be secret, so only
 * its name is in the message.
 */
export function checkHeaders(headers: Headers): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      throw new TelemetrySettingError(
        `OTEL_EXPORTER_OTLP_HEADERS: the header ${JSON.stringify(name)} is not valid`,
      );
    }
  }
}

import { decodeMessage, encodeMessage } from '../../../../test/support/otlp/otlp-messages.ts';
import type { End } from '../../engine/end.ts';
import { hostOf, PORTS } from '../addresses.ts';
import type { CollectedRecord } from '../checks/facts.ts';
import { HttpReader, type Message } from '../http-reader.ts';
import type { CollectorMode } from '../plan.ts';
import type { WorldParts } from '../world-parts.ts';
import { Actor } from './actor.ts';

interface SpanMessage {
  readonly spanId: string;
  readonly traceId: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

const ADDRESS = `${hostOf.collector}:${PORTS.collector}`;
/** Batches above this are too large for the collector in the mode `too_large`. */
const SMALL_BYTES = 1_500;

/** An OpenTelemetry Collector, and what can be wrong with one. */
export class Collector {
  mode: CollectorMode = 'ok';
  readonly #parts: WorldParts;
  #actor = new Actor('collector');
  #isUp = false;

  constructor(parts: WorldParts) {
    this.#parts = parts;
  }

  start(): void {
    if (this.#isUp) return;
    this.#isUp = true;
    this.#actor = new Actor('collector');
    this.#parts.network.listen(ADDRESS, {
      owner: this.#actor,
      reusesPort: false,
      accept: (end) => this.#serve(end),
    });
  }

  set(mode: CollectorMode): void {
    this.mode = mode;
    if (mode !== 'down') {
      this.start();
      return;
    }
    this.#isUp = false;
    this.#actor.hasEnded = true;
    this.#parts.network.closeAllOf(this.#actor);
  }

  #serve(end: End): void {
    const reader = new HttpReader('request', (message) => this.#answer(end, message));
    end.handler = {
      onData: (bytes) => reader.push(bytes),
      onEnd: () => end.close(),
      onError: () => end.close(),
    };
    end.startReading();
  }

  #answer(end: End, message: Message): void {
    if (!message.startLine.startsWith('POST /v1/traces')) {
      // Metrics.
      this.#respond(end, 200, 'OK');
      return;
    }
    const records = toRecords(message.body);
    switch (this.mode) {
      case 'ok':
      case 'down':
        this.#take(records);
        this.#respond(end, 200, 'OK');
        break;
      case 'slow':
        this.#take(records);
        this.#parts.schedule.after(700, this.#actor, 'collector answers late', () =>
          this.#respond(end, 200, 'OK'),
        );
        break;
      case 'hangs':
        break;
      case 'cuts':
        // It has processed the batch, and nobody learns of it.
        this.#take(records);
        end.reset();
        end.close();
        break;
      case 'later':
        this.#respond(end, 503, 'Service Unavailable', 'Retry-After: 1\r\n');
        break;
      case 'refuses':
        this.#refuse(records);
        this.#respond(end, 400, 'Bad Request');
        break;
      case 'fails':
        this.#refuse(records);
        this.#respond(end, 500, 'Internal Server Error');
        break;
      case 'too_large':
        if (message.body.length > SMALL_BYTES && records.length > 1) {
          this.#respond(end, 413, 'Content Too Large');
          break;
        }
        this.#take(records);
        this.#respond(end, 200, 'OK');
        break;
      case 'partial':
        this.#take(records.slice(1));
        this.#refuse(records.slice(0, 1));
        this.#respond(
          end,
          200,
          'OK',
          '',
          encodeMessage('ExportTraceServiceResponse', {
            partialSuccess: { rejectedSpans: 1, errorMessage: 'one is odd' },
          }),
        );
        break;
    }
  }

  #take(records: readonly CollectedRecord[]): void {
    for (const record of records) this.#parts.ledger.onCollected(record);
  }

  #refuse(records: readonly CollectedRecord[]): void {
    for (const record of records) this.#parts.ledger.onRefused(record);
  }

  #respond(end: End, status: number, reason: string, fields = '', body: Uint8Array = Buffer.alloc(0)): void {
    const head = `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/x-protobuf\r\n${fields}Content-Length: ${body.length}\r\n\r\n`;
    end.write(Buffer.concat([Buffer.from(head), body]), () => undefined);
  }
}

/** The request records of a batch. Spans of operators' calls are none. */
function toRecords(body: Buffer): readonly CollectedRecord[] {
  const { resourceSpans } = decodeMessage('TracesData', body) as {
    readonly resourceSpans: readonly {
      readonly scopeSpans: readonly { readonly spans: readonly SpanMessage[] }[];
    }[];
  };
  return resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans }) => spans)
    .map(({ spanId, traceId, attributes }) => ({
      spanId,
      traceId,
      attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, toPlain(value)])),
    }))
    .filter(({ attributes }) => 'gateway.request_id' in attributes);
}

function toPlain(value: Readonly<Record<string, unknown>>): string | number | boolean {
  const [[kind, plain] = []] = Object.entries(value);
  if (kind === 'intValue') return Number(plain);
  return typeof plain === 'boolean' || typeof plain === 'number' ? plain : String(plain);
}

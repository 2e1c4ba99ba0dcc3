import { decodeMessage, encodeMessage } from '#testkit/otlp/otlp-messages.ts';
import type { End } from '../../engine/end.ts';
import { hostOf, PORTS } from '../addresses.ts';
import { type ExportedSpans, readTraces } from '../checks/exported-spans.ts';
import { HttpReader, type Message } from '../http-reader.ts';
import type { CollectorMode } from '../plan.ts';
import type { WorldParts } from '../world-parts.ts';
import { Actor } from './actor.ts';

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
    const spans = readTraces(decodeMessage('TracesData', message.body));
    switch (this.mode) {
      case 'ok':
      case 'down':
        this.#take(spans);
        this.#respond(end, 200, 'OK');
        break;
      case 'slow':
        this.#take(spans);
        this.#parts.schedule.after(700, this.#actor, 'collector answers late', () =>
          this.#respond(end, 200, 'OK'),
        );
        break;
      case 'hangs':
        break;
      case 'cuts':
        // It has processed the batch, and nobody learns of it.
        this.#take(spans);
        end.reset();
        end.close();
        break;
      case 'later':
        this.#respond(end, 503, 'Service Unavailable', 'Retry-After: 1\r\n');
        break;
      case 'refuses':
        this.#refuse(spans);
        this.#respond(end, 400, 'Bad Request');
        break;
      case 'fails':
        this.#refuse(spans);
        this.#respond(end, 500, 'Internal Server Error');
        break;
      case 'too_large':
        if (message.body.length > SMALL_BYTES && spans.records.length > 1) {
          this.#respond(end, 413, 'Content Too Large');
          break;
        }
        this.#take(spans);
        this.#respond(end, 200, 'OK');
        break;
      case 'partial':
        this.#takeAllButFirst(spans);
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

  #take({ records, ledgers }: ExportedSpans): void {
    const { chronicle } = this.#parts;
    for (const record of records) chronicle.onCollected(record);
    for (const ledger of ledgers) chronicle.onLedger(ledger);
  }

  #refuse({ records, ledgers }: ExportedSpans): void {
    const { chronicle } = this.#parts;
    for (const record of records) chronicle.onRefused(record);
    for (const ledger of ledgers) chronicle.onLedgerRefused(ledger);
  }

  #takeAllButFirst({ records, ledgers }: ExportedSpans): void {
    this.#take({ records: records.slice(1), ledgers: ledgers.slice(1) });
    this.#refuse({ records: records.slice(0, 1), ledgers: ledgers.slice(0, 1) });
  }

  #respond(end: End, status: number, reason: string, fields = '', body: Uint8Array = Buffer.alloc(0)): void {
    const head = `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/x-protobuf\r\n${fields}Content-Length: ${body.length}\r\n\r\n`;
    end.write(Buffer.concat([Buffer.from(head), body]), () => undefined);
  }
}

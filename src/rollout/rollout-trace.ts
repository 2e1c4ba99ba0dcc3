import { randomBytes } from 'node:crypto';
import type { RolloutGateways } from './gateways/gateways.ts';
import { RolloutStop, toOutcome } from './stop.ts';

/** The id of a span: 16 hexadecimal digits. */
export const newSpanId = () => randomBytes(8).toString('hex');

/** The id of a trace: 32 hexadecimal digits. */
export const newTraceId = () => randomBytes(16).toString('hex');

/** A span that has begun. */
export interface StepSpan {
  readonly step: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  /** Monotonic: the time of day may be set before it ends. */
  readonly startedMs: number;
  readonly replica: string | null;
}

/** Begins a span. */
export function beginSpan(of: Omit<StepSpan, 'spanId' | 'startedMs'>, spanId = newSpanId()): StepSpan {
  return { ...of, spanId, startedMs: performance.now() };
}

/** How a step ended. */
export interface StepEnd {
  readonly outcome: 'ok' | 'good' | 'bad' | 'undecided' | 'failed' | 'interrupted';
  readonly sentence?: string;
  readonly figures?: Readonly<Record<string, number>>;
}

/** The trace of a rollout: its spans go to the collector of the gateway. */
export class RolloutTrace {
  readonly #traceId: string;
  readonly #gateways: Pick<RolloutGateways, 'record'>;
  readonly #onEnd: (span: StepSpan, end: StepEnd, durationMs: number) => void;

  constructor(
    traceId: string,
    gateways: Pick<RolloutGateways, 'record'>,
    onEnd: (span: StepSpan, end: StepEnd, durationMs: number) => void,
  ) {
    this.#traceId = traceId;
    this.#gateways = gateways;
    this.#onEnd = onEnd;
  }

  /** Records the span of a step that ends now. */
  async end(span: StepSpan, end: StepEnd): Promise<void> {
    const { outcome, sentence, figures = {} } = end;
    const durationMs = Math.round(performance.now() - span.startedMs);
    this.#onEnd(span, end, durationMs);
    const query = new URLSearchParams({
      trace_id: this.#traceId,
      span_id: span.spanId,
      ...(span.parentSpanId === null ? {} : { parent_span_id: span.parentSpanId }),
      step: span.step,
      start_ms: String(Date.now() - durationMs),
      outcome,
      ...(span.replica === null ? {} : { replica: span.replica }),
      ...(sentence === undefined ? {} : { sentence }),
    });
    for (const [name, value] of Object.entries(figures)) query.set(name, String(value));
    await this.#gateways.record(query);
  }

  /** Carries out a step and records its span, however it ends. `toEnd` says what its result means. */
  async step<T>(
    of: Omit<StepSpan, 'spanId' | 'startedMs'>,
    work: () => Promise<T>,
    toEnd: (result: T) => StepEnd = () => ({ outcome: 'ok' }),
  ): Promise<T> {
    const span = beginSpan(of);
    try {
      const result = await work();
      await this.end(span, toEnd(result));
      return result;
    } catch (error) {
      const sentence = error instanceof Error ? error.message : 'failed';
      const outcome = error instanceof RolloutStop ? toOutcome(error.kind) : 'failed';
      await this.end(span, { outcome, sentence });
      throw error;
    }
  }
}

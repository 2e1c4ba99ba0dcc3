import type { Agent } from 'node:http';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { waitAtMost } from '#otel/base';
import type { OtlpOptions } from '#otel/collector';

/** What the SDK's exporters have in common. */
interface Exporter<Items> {
  export(items: Items, onResult: (result: ExportResult) => void): void;
  forceFlush?(): Promise<void>;
  shutdown(): Promise<void>;
}

/** Creates an exporter that uses the connections of the given agent. */
type CreateExporter<Items> = (httpAgentOptions: () => Promise<Agent>) => Exporter<Items>;

/** An exporter and the agent that has its connections. */
interface ConnectedExporter<Items> {
  readonly exporter: Exporter<Items>;
  readonly agent: Promise<Agent>;
}

/**
 * One of the SDK's OTLP exporters, whose every call ends by a deadline. The SDK's own time-out is that of an idle socket:
 * a call whose connection was upgraded, or whose answer never ends, stays open for ever, and after 30 of them the
 * exporter sends nothing more. After a call that failed or timed out, the exporter and its connections are replaced.
 */
export class DeadlineExporter<Items> implements Exporter<Items> {
  readonly #options: Pick<OtlpOptions, 'timeoutMs' | 'createAgent'>;
  readonly #create: CreateExporter<Items>;
  #current: ConnectedExporter<Items>;

  constructor(options: Pick<OtlpOptions, 'timeoutMs' | 'createAgent'>, create: CreateExporter<Items>) {
    this.#options = options;
    this.#create = create;
    this.#current = this.#connect();
  }

  export(items: Items, onResult: (result: ExportResult) => void): void {
    void this.#export(items).then(onResult);
  }

  async forceFlush(): Promise<void> {
    await this.#current.exporter.forceFlush?.();
  }

  async shutdown(): Promise<void> {
    const { exporter, agent } = this.#current;
    await exporter.shutdown();
    (await agent).destroy();
  }

  async #export(items: Items): Promise<ExportResult> {
    const { promise, resolve } = Promise.withResolvers<ExportResult>();
    this.#current.exporter.export(items, resolve);
    const result = (await waitAtMost(this.#options.timeoutMs, promise)) ?? TIMED_OUT;
    if (result.code !== ExportResultCode.SUCCESS) this.#replace();
    return result;
  }

  #connect(): ConnectedExporter<Items> {
    const agent = this.#options.createAgent();
    return { agent, exporter: this.#create(() => agent) };
  }

  #replace(): void {
    const { agent } = this.#current;
    this.#current = this.#connect();
    void agent.then((replaced) => replaced.destroy());
  }
}

class DeadlineError extends Error {
  readonly code = 'timeout';
}

const TIMED_OUT: ExportResult = { code: ExportResultCode.FAILED, error: new DeadlineError() };

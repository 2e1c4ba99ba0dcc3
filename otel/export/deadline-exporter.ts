import type { Agent } from 'node:http';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { OtlpOptions } from './otlp-options.ts';

/** What the SDK's exporters have in common. */
interface Exporter<Items> {
  export(items: Items, onResult: (result: ExportResult) => void): void;
  forceFlush?(): Promise<void>;
  shutdown(): Promise<void>;
}

/** Makes an exporter whose connections are those of the agent that it is given. */
type CreateExporter<Items> = (httpAgentOptions: () => Promise<Agent>) => Exporter<Items>;

/** An exporter, and where its connections are. */
interface Life<Items> {
  readonly exporter: Exporter<Items>;
  readonly agent: Promise<Agent>;
}

/**
 * One of the SDK's OTLP exporters, whose every call ends by the deadline. The exporter's own time-out is that of an
 * idle socket: a call whose connection was upgraded, or whose answer never ends, stays open for ever, and with 30 of
 * them it sends nothing more. After a call that failed, or was not answered in time, it is given up with its
 * connections: the next call goes to a new one.
 */
export class DeadlineExporter<Items> implements Exporter<Items> {
  readonly #options: Pick<OtlpOptions, 'timeoutMs' | 'createAgent'>;
  readonly #create: CreateExporter<Items>;
  #life: Life<Items>;

  constructor(options: Pick<OtlpOptions, 'timeoutMs' | 'createAgent'>, create: CreateExporter<Items>) {
    this.#options = options;
    this.#create = create;
    this.#life = this.#begin();
  }

  export(items: Items, onResult: (result: ExportResult) => void): void {
    let isOver = false;
    const finish = (result: ExportResult): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(deadline);
      if (result.code !== ExportResultCode.SUCCESS) this.#giveUp();
      onResult(result);
    };
    const deadline = setTimeout(
      () => finish({ code: ExportResultCode.FAILED, error: new DeadlineError() }),
      this.#options.timeoutMs,
    );
    this.#life.exporter.export(items, finish);
  }

  async forceFlush(): Promise<void> {
    await this.#life.exporter.forceFlush?.();
  }

  async shutdown(): Promise<void> {
    const { exporter, agent } = this.#life;
    await exporter.shutdown();
    (await agent).destroy();
  }

  #begin(): Life<Items> {
    const agent = this.#options.createAgent();
    return { agent, exporter: this.#create(() => agent) };
  }

  #giveUp(): void {
    const { agent } = this.#life;
    this.#life = this.#begin();
    void agent.then((given) => given.destroy());
  }
}

class DeadlineError extends Error {
  readonly code = 'timeout';
}

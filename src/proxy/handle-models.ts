import type { ReplicaPool } from '../replicas/data/pool.ts';
import type { Replica } from '../replicas/data/replica.ts';
import {
  type Acquired,
  type Attempts,
  type AttemptVariant,
  type FailedAttemptCode,
  forward,
} from './attempt/forward.ts';
import { logFailedAttempt } from './attempt/log-failed-attempt.ts';
import type { AttemptObserver, AttemptRequest } from './attempt/send.ts';
import { failExchange } from './defect.ts';
import type { Exchange } from './exchange.ts';
import type { ProxyCollaborators, ProxySettings } from './proxy-context.ts';

/** Answers a request for the list of models with that of the next replica in turn. Leaves no record. */
export async function handleModels(
  exchange: Exchange,
  settings: ProxySettings,
  collaborators: ProxyCollaborators,
): Promise<void> {
  exchange.http.discardBody();
  try {
    await forward(exchange, new UnrecordedAttempts(exchange, collaborators), settings);
  } catch (error) {
    failExchange(exchange, error, collaborators.log);
  }
}

/** Answers with the models among these that some replica serves. A replica's own list could name others. */
export function answerModels(exchange: Exchange, models: readonly string[], pool: ReplicaPool): void {
  exchange.http.discardBody();
  const data = models
    .filter((model) => pool.servesModel(model))
    .map((id) => ({ id, object: 'model', created: 0, owned_by: 'gateway' }));
  const fieldLines = `X-Request-Id: ${exchange.requestId}\r\n`;
  exchange.http.answer(200, 'application/json', JSON.stringify({ object: 'list', data }), fieldLines);
}

/** The attempts of a request without a body that leaves no record. */
class UnrecordedAttempts implements Attempts, AttemptObserver {
  readonly #exchange: Exchange;
  readonly #traceparent: string;
  readonly #collaborators: ProxyCollaborators;

  constructor(exchange: Exchange, collaborators: ProxyCollaborators) {
    this.#exchange = exchange;
    this.#traceparent = collaborators.telemetry.createUnsampledTraceparent();
    this.#collaborators = collaborators;
  }

  acquire(tried: ReadonlySet<Replica>): Acquired {
    return this.#collaborators.pool.acquireAny(tried);
  }

  begin(replica: Replica, { onFreshConnection }: AttemptVariant): AttemptRequest {
    return {
      replica,
      exchange: this.#exchange,
      traceparent: this.#traceparent,
      body: null,
      onFreshConnection,
      mayRepeat: true,
      reading: null,
      observer: this,
    };
  }

  onWritten(): void {}

  onResponse(): void {}

  withdraw(): void {}

  fail(replica: Replica, code: FailedAttemptCode, cause: unknown): void {
    const traceId = this.#traceparent.slice(3, 35);
    logFailedAttempt(this.#collaborators.log, replica, { code, cause, traceId });
  }

  finish(): void {}
}

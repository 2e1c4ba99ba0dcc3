import { forward } from './attempt/forward.ts';
import { failExchange } from './defect.ts';
import type { Exchange } from './exchange.ts';
import type { ProxyCollaborators, ProxySettings } from './proxy-context.ts';

/** GET /v1/models: answered by the next replica in turn, without a record. */
export async function handleModels(
  exchange: Exchange,
  settings: ProxySettings,
  { pool, telemetry, log, replicaLog }: ProxyCollaborators,
): Promise<void> {
  const traceparent = telemetry.createUnsampledTraceparent();
  const traceId = traceparent.slice(3, 35);
  exchange.http.discardBody();
  try {
    await forward(
      exchange,
      {
        acquire: (tried) => pool.acquireAny(tried),
        toAttempt: (replica, { onFreshConnection }) => ({
          ...{ replica, exchange, traceparent, onFreshConnection },
          body: null,
          didInjectUsage: false,
          relay: { maxEventBytes: settings.maxEventBytes, undo: null, createStreamTap: null },
          onWritten: () => undefined,
          onResponse: () => replicaLog.answered(replica, traceId),
        }),
        onTry: () => undefined,
        onLastTry: () => undefined,
        onFailedTry: (replica, code, cause) => replicaLog.failedTry(replica, { code, cause, traceId }),
      },
      settings,
    );
  } catch (error) {
    failExchange(exchange, error, log);
  }
}

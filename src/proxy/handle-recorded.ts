import { forward } from './attempt/forward.ts';
import { RecordedAttempts } from './attempt/recorded-attempts.ts';
import { isRestricted, type RecordedRequest } from './attempt/recorded-request.ts';
import { failExchange } from './defect.ts';
import type { RecordedEndpoint } from './endpoints/recorded-endpoint.ts';
import type { Exchange } from './exchange.ts';
import { FormAttempts } from './form/form-attempts.ts';
import { FormBody } from './form/form-body.ts';
import type { ProxyCollaborators, ProxySettings, ProxyTools } from './proxy-context.ts';
import { takeRecordedFields } from './record/recorded-fields.ts';
import { Recording } from './record/recording.ts';
import { readIncomingTrace } from './request/incoming-trace.ts';
import { type HeldBody, readBody } from './request/read-body.ts';

/** Starts the span and the record of a request that has just arrived. */
export function startRecording(
  exchange: Exchange,
  endpoint: RecordedEndpoint,
  { recordedFields, continuesTraces }: ProxySettings,
  { telemetry }: ProxyCollaborators,
): Recording {
  const span = telemetry.startRequestSpan({
    method: 'POST',
    route: endpoint.path,
    incoming: readIncomingTrace(exchange.head.fields, continuesTraces),
  });
  return new Recording(exchange, span, endpoint.path, takeRecordedFields(exchange.http, recordedFields));
}

/** Reads, inspects and forwards one recorded request. Every path ends with an answer. */
export async function handleRecorded(
  request: RecordedRequest,
  settings: ProxySettings,
  tools: ProxyTools,
): Promise<void> {
  if (request.endpoint.isForm) return handleForm(request, settings, tools);
  const { exchange } = request;
  let body: HeldBody | null = null;
  // `using` costs 270 ns per use on Node 26.10.
  try {
    const reading = readBody(exchange, {
      maxBytes: settings.maxBodyBytes,
      timeoutMs: settings.clientBodyMs,
      budget: tools.bodyBudget,
    });
    body = reading instanceof Promise ? await reading : reading;
    const inspecting = tools.inspector.inspect(body.chunks, request.endpoint, settings.aliases);
    const inspected = inspecting instanceof Promise ? await inspecting : inspecting;
    // While a large body was inspected the client may have left. What it held of its limits has been given back.
    if (exchange.isFinished) return;
    await forward(exchange, new RecordedAttempts(request, body, inspected, settings, tools), settings);
  } catch (error) {
    failExchange(exchange, error, tools.log);
  } finally {
    body?.release();
  }
}

/** Reads and forwards one recorded request whose body is a form. Every path ends with an answer. */
async function handleForm(
  request: RecordedRequest,
  settings: ProxySettings,
  tools: ProxyTools,
): Promise<void> {
  const { exchange, client, recording } = request;
  let form: FormBody | null = null;
  try {
    form = new FormBody(exchange, {
      maxBytes: settings.maxBodyBytes,
      timeoutMs: settings.clientBodyMs,
      budget: tools.bodyBudget,
      maxHeldBytes: settings.maxBeforeModelBytes,
      // A client that may not use every model must name one first: later, the replica would have it already.
      onlyModel: client?.models ? null : tools.pool.onlyModel,
      aliases: settings.aliases,
      isRestricted: isRestricted(exchange, client),
      mayFoldCase: (model) => tools.pool.mayFoldCase(model),
    });
    recording.noteForm(form);
    await form.untilRoutable(exchange);
    await forward(exchange, new FormAttempts(request, form, settings, tools), settings);
  } catch (error) {
    failExchange(exchange, error, tools.log);
  } finally {
    form?.release();
  }
}

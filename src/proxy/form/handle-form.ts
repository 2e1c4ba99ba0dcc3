import { forward } from '../attempt/forward.ts';
import { isRestricted, type RecordedRequest } from '../attempt/recorded-request.ts';
import { failExchange } from '../defect.ts';
import type { ProxySettings, ProxyTools } from '../proxy-context.ts';
import { FormAttempts } from './form-attempts.ts';
import { FormBody } from './form-body.ts';

/** Reads and forwards one recorded request whose body is a form. Every path ends with an answer. */
export async function handleForm(
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

import type { KnownResponse } from '#replicas';
import { forward } from './attempt/forward.ts';
import {
  NO_SUBJECT,
  type RequestSubject,
  UnrecordedAttempts,
  type UnrecordedBody,
} from './attempt/unrecorded-attempts.ts';
import { Upload } from './attempt/upload.ts';
import { failExchange } from './defect.ts';
import type { Exchange } from './exchange.ts';
import { Failure } from './failure.ts';
import type { ProxySettings, ProxyTools } from './proxy-context.ts';
import type { ModelAliases } from './request/model-aliases.ts';
import { type HeldBody, readBody } from './request/read-body.ts';

/** Larger bodies, and those of unknown length, are sent as they come. Smaller ones can be sent again. */
const HELD_BYTES = 64 * 1024;

/** A request about this response; null: nothing is known of it. */
export function toSubject(response: KnownResponse | null, aliases: ModelAliases): RequestSubject {
  if (response === null) return NO_SUBJECT;
  const modelName = [...(aliases?.keys() ?? [])].find((name) => response.isCalledAs(name)) ?? null;
  return { home: response.home, modelName };
}

/**
 * Relays a request of `pass` to the next replica in turn, or one about a stored response to the replica that has it.
 * Leaves no record. Every path ends with an answer.
 *
 * @param subject the response; null: the request is one of `pass`
 */
export async function handlePassed(
  exchange: Exchange,
  subject: RequestSubject | null,
  settings: ProxySettings,
  tools: ProxyTools,
): Promise<void> {
  let held: HeldBody | null = null;
  try {
    const { fields, framing } = exchange.head;
    if (framing.kind === 'length' && framing.bytes > settings.maxBodyBytes) {
      throw new Failure('request_too_large');
    }
    const limits = { maxBytes: settings.maxBodyBytes, timeoutMs: settings.clientBodyMs };
    let body: UnrecordedBody = null;
    // A body with an encoding is not read, only sent.
    const isEncoded = fields.get('content-encoding') !== undefined;
    if (framing.kind === 'length' && framing.bytes <= HELD_BYTES && !isEncoded) {
      held = await readBody(exchange, { ...limits, budget: tools.bodyBudget });
      body = held.chunks;
    } else if (framing.kind !== 'none') {
      body = new Upload(exchange.http, framing, limits);
    }
    const request = { body, ...(subject ?? NO_SUBJECT) };
    await forward(exchange, new UnrecordedAttempts(exchange, request, settings, tools), settings);
  } catch (error) {
    failExchange(exchange, error, tools.log);
  } finally {
    held?.release();
  }
}

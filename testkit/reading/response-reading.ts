import { Fingerprint } from '#replicas';
import type { Engine } from '#replicas/terms';
import type { RecordedEndpoint } from '../../src/proxy/endpoints/recorded-endpoint.ts';
import { findRecordedEndpoint } from '../../src/proxy/endpoints/table.ts';
import { EventRelay } from '../../src/proxy/response/events/event-relay.ts';
import { EventScratch } from '../../src/proxy/response/events/event-scratch.ts';
import { JsonTap } from '../../src/proxy/response/json-tap.ts';
import type { ResponseReading } from '../../src/proxy/response/response-reading.ts';
import { StreamTap } from '../../src/proxy/response/stream-tap.ts';
import type { UndoRules } from '../../src/proxy/response/undo-usage.ts';
import { UsageTally } from '../../src/proxy/response/usage-tally.ts';

/** The recorded endpoint with this path. */
export function endpointAt(path: string): RecordedEndpoint {
  const endpoint = findRecordedEndpoint(path);
  if (endpoint === undefined) throw new Error(`no endpoint is at ${path}`);
  return endpoint;
}

/** How a chat completion is read, where these settings say nothing else. */
export function toReading(settings: Partial<ResponseReading> = {}): ResponseReading {
  return {
    endpoint: endpointAt('/v1/chat/completions'),
    scratch: new EventScratch(),
    maxEventBytes: 1024 * 1024,
    undo: null,
    onResponseId: null,
    choicesPerPrompt: 1,
    isTotalPerChoice: false,
    ...settings,
  };
}

/** What reads a whole answer. */
export function createJsonTap(settings: Partial<ResponseReading> = {}): JsonTap {
  return new JsonTap(toReading(settings));
}

/** The relay of a stream whose request arrived at 0, and its tap. */
export function createEventRelay(settings: Partial<ResponseReading> = {}, requestArrivedMs = 0) {
  const reading = toReading(settings);
  const tap = new StreamTap(requestArrivedMs, reading.endpoint, new UsageTally(reading));
  return { tap, events: new EventRelay(reading, new Fingerprint(), tap) };
}

/** What has to be undone in the streams of an engine. */
export function undoRulesOf(
  engine: Engine,
  { path = '/v1/chat/completions', continuousUsageStats = false } = {},
): UndoRules {
  const rules = endpointAt(path).undoRules?.(engine, continuousUsageStats);
  if (rules === undefined) throw new Error(`usage is not asked for at ${path}`);
  return rules;
}

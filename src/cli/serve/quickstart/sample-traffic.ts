import { setTimeout as delay } from 'node:timers/promises';

/** One request each: a comparison of replicas needs some hundred requests, and a newcomer waits half a minute. */
const INTERVAL_MS = 80;
/** Tokens of an answer. */
const MAX_TOKENS = 16;
/** While a replica hangs, its streams stay open: further requests are left out. */
const MAX_OPEN = 200;
const TIMEOUT_MS = 60_000;

/** The feature of the sample's requests. Their records are not printed one by one. */
export const SAMPLE_FEATURE = 'sample';

const TENANTS = ['acme', 'acme', 'globex'] as const;
const QUESTIONS = ['What is a gateway?', 'What is a span?', 'What is a tenant?', 'What is a drain?'] as const;

/** What became of the requests of a sample. */
export interface SampleCounts {
  readonly sent: number;
  readonly answered: number;
  readonly failed: number;
}

/** Sends streams to the gateway, one after the other, until `signal` aborts. Resolves with what became of those that have ended. */
export async function sendSampleTraffic(gatewayUrl: string, signal: AbortSignal): Promise<SampleCounts> {
  const counts = { sent: 0, answered: 0, failed: 0 };
  let openCount = 0;
  const send = async (index: number): Promise<void> => {
    openCount += 1;
    counts.sent += 1;
    const isAnswered = await sendOne(gatewayUrl, index, signal);
    openCount -= 1;
    if (signal.aborted) return;
    counts[isAnswered ? 'answered' : 'failed'] += 1;
  };
  for (let index = 0; !signal.aborted; index += 1) {
    if (openCount < MAX_OPEN) void send(index);
    await delay(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
  return counts;
}

/** Whether the whole answer came. */
async function sendOne(gatewayUrl: string, index: number, signal: AbortSignal): Promise<boolean> {
  const content = QUESTIONS[index % QUESTIONS.length];
  try {
    const response = await fetch(`${gatewayUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'X-Tenant': TENANTS[index % TENANTS.length] ?? '',
        'X-Feature': SAMPLE_FEATURE,
      },
      body: JSON.stringify({
        model: 'demo',
        stream: true,
        max_tokens: MAX_TOKENS,
        messages: [{ role: 'user', content }],
      }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    const text = await response.text();
    return response.ok && text.endsWith('data: [DONE]\n\n') && !text.includes('data: {"error"');
  } catch {
    return false;
  }
}

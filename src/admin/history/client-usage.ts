import { z } from 'zod';
import type { RecordedHistory } from '#history';
import { AdminError } from '../admin-error.ts';
import { readBy, toUsageJson } from '../routes/history/usage.ts';
import { askHistory } from './history-answer.ts';
import { readSpan, spanParams, stepParam, toInvalid, toStep } from './time-span.ts';

/** Who asks for its usage on the client listener. */
export interface UsageClient {
  /** Null: its token does not say it. */
  readonly name: string | null;
  readonly tenant: string;
}

/** An answer on the client listener: JSON. */
export interface ClientAnswer {
  readonly status: number;
  readonly body: string;
}

/** A client gets so many rows at most. */
const MAX_ROWS = 1_000;
/** So many clients may ask at the same time: the history has to answer operators, too. */
const MAX_ASKING = 4;
const DAY_MS = 86_400_000;

const params = { ...spanParams, by: readBy(['model', 'endpoint']), step: stepParam };
const query = z.strictObject(params, `it may have ${Object.keys(params).join(', ')}`);

/** Creates what answers GET /v1/usage: the usage of the client that asks, and of nobody else. */
export function createClientUsage(
  history: Pick<RecordedHistory, 'ask'>,
): (client: UsageClient, search: string) => Promise<ClientAnswer> {
  let asking = 0;
  return async (client, search) => {
    if (asking >= MAX_ASKING) return toError(new AdminError('history_unavailable'));
    asking += 1;
    try {
      const answer = await answerUsage(client, search, history);
      return answer instanceof AdminError ? toError(answer) : { status: 200, body: JSON.stringify(answer) };
    } finally {
      asking -= 1;
    }
  };
}

async function answerUsage(client: UsageClient, search: string, history: Pick<RecordedHistory, 'ask'>) {
  const parsed = query.safeParse(Object.fromEntries(new URLSearchParams(search)));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return toInvalid(String(issue?.path[0] ?? 'query'), String(issue?.message));
  }
  const { by = [], step: askedStep, ...asked } = parsed.data;
  const span = readSpan(asked, { nowMs: Date.now(), defaultMs: DAY_MS });
  if (span instanceof AdminError) return span;
  const step = toStep(askedStep, span, MAX_ROWS);
  if (step instanceof AdminError) return step;
  const answer = await askHistory(history, {
    kind: 'usage',
    fromMs: span.fromMs,
    untilMs: span.untilMs,
    by,
    step,
    limit: MAX_ROWS,
    // A token that names no client is its tenant.
    filters: { tenant: client.tenant, ...(client.name === null ? {} : { client: client.name }) },
  });
  return answer instanceof AdminError ? answer : toClientJson(toUsageJson(answer, span, by));
}

/** Without what is the operator's: attempts, GPU time, costs, what is kept, and how many requests of all tenants are missing. */
function toClientJson({ rows, total, gaps, kept: _, note: __, ...rest }: ReturnType<typeof toUsageJson>) {
  const ownGaps = gaps.map(({ records: _, ...gap }) => gap);
  return {
    object: 'usage',
    ...rest,
    gaps: ownGaps,
    rows: rows.map(withoutCosts),
    total: withoutCosts(total),
  };
}

function withoutCosts<
  T extends { readonly attempts: number; readonly gpu_seconds: number; readonly costs: unknown },
>({ attempts: _, gpu_seconds: __, costs: ___, ...rest }: T) {
  return rest;
}

function toError(error: AdminError): ClientAnswer {
  return { status: error.status, body: error.toJson() };
}

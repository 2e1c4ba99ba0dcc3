import type { Replica } from '../../replicas/data/replica.ts';
import type { Exchange } from '../exchange.ts';
import type { FailureCode } from '../failure.ts';
import { type Acquired, awaitLease, isWait } from './await-lease.ts';
import { type AttemptOutcome, type AttemptRequest, type SendSettings, send } from './send.ts';

/** A request as far as it does not depend on the replica. */
export interface ForwardPlan {
  /** A replica that was not tried, why there is none, or a wait for one. */
  readonly acquire: (tried: ReadonlySet<Replica>) => Acquired;
  /** The attempt on one replica. `withUsage`: put include_usage in, where the client did not ask. */
  readonly toAttempt: (
    replica: Replica,
    try_: { withUsage: boolean; onFreshConnection: boolean },
  ) => AttemptRequest;
  /** A try has begun on this replica; null when it turned out to be drained and was not tried. */
  readonly onTry: (replica: Replica | null) => void;
  /** A try failed and another may follow. `statusCode`: what the replica answered, if it did. */
  readonly onFailedTry: (replica: Replica, code: FailedTryCode, cause: unknown, statusCode?: number) => void;
  /** A try was the last: its response was relayed, wholly or up to where it broke off, or the client left. */
  readonly onLastTry: () => void;
}

/** Why a try was not the last word, or was. */
export type FailedTryCode = 'not_connected' | 'loading' | 'reset_on_reuse' | 'usage_refused' | FailureCode;

/** What comes after an attempt. */
export type NextStep = 'done' | 'next_replica' | 'repeat_on_fresh' | 'repeat_without_usage' | 'fail';

/**
 * Decides what follows an attempt. Repeated at most once each on the same replica: a reused connection that
 * was reset, and a refusal of our include_usage. Nothing is repeated once a response has begun.
 */
export function decideNext(
  outcome: AttemptOutcome,
  tried: { readonly onFreshConnection: boolean; readonly withUsage: boolean },
): NextStep {
  switch (outcome.kind) {
    case 'relayed':
    case 'abandoned':
      return 'done';
    case 'drained':
    case 'not_connected':
    case 'loading':
      return 'next_replica';
    case 'reset_on_reuse':
      return tried.onFreshConnection ? 'fail' : 'repeat_on_fresh';
    case 'usage_refused':
      return tried.withUsage ? 'repeat_without_usage' : 'fail';
    case 'failed':
      return 'fail';
  }
}

/**
 * Brings a request to a replica: acquires a lease, tries, and goes on to the next replica as long as nothing
 * was sent. When it resolves the client has its answer, or is gone.
 */
export async function forward(exchange: Exchange, plan: ForwardPlan, settings: SendSettings): Promise<void> {
  const tried = new Set<Replica>();
  /** What a replica that loads its model answered: the client's, if nobody else takes the request. */
  let relayLoading: (() => void) | null = null;
  while (!exchange.isFinished) {
    const acquired = plan.acquire(tried);
    const lease = isWait(acquired) ? await awaitLease(acquired, exchange) : acquired;
    if (lease === 'gone') return;
    if (typeof lease === 'string') {
      if (relayLoading === null) exchange.fail(lease);
      else relayLoading();
      return;
    }
    using held = lease;
    // The client may have left in the moment in which the wait was over.
    if (exchange.isFinished) return;
    const { replica } = held;
    const outcome = await tryReplica(replica, exchange, plan, settings);
    if (outcome === null) return;
    if (outcome.kind === 'loading') relayLoading = outcome.relayAnswer;
    if (!replica.isDrained) tried.add(replica);
  }
}

/** Tries one replica, with the repeats it is due. Returns why another is to be tried; null: the exchange is decided. */
async function tryReplica(
  replica: Replica,
  exchange: Exchange,
  plan: ForwardPlan,
  settings: SendSettings,
): Promise<AttemptOutcome | null> {
  const try_ = { withUsage: !replica.refusesIncludeUsage, onFreshConnection: false };
  let wasUsageRefused = false;
  for (;;) {
    plan.onTry(replica);
    const outcome = await send(plan.toAttempt(replica, try_), settings);
    const next = decideNext(outcome, try_);
    reportFailedTry(outcome, replica, plan);
    switch (next) {
      case 'done':
        if (wasUsageRefused && outcome.kind === 'relayed' && outcome.statusCode < 300) {
          replica.noteUsageRefused();
        }
        return null;
      case 'next_replica':
        return outcome;
      case 'repeat_on_fresh':
        try_.onFreshConnection = true;
        break;
      case 'repeat_without_usage':
        try_.withUsage = false;
        wasUsageRefused = true;
        break;
      case 'fail':
        exchange.fail(outcome.kind === 'failed' ? outcome.code : 'upstream_failed');
        return null;
    }
  }
}

function reportFailedTry(outcome: AttemptOutcome, replica: Replica, plan: ForwardPlan): void {
  switch (outcome.kind) {
    case 'relayed':
    case 'abandoned':
      plan.onLastTry();
      break;
    case 'drained':
      plan.onTry(null);
      break;
    case 'usage_refused':
      plan.onFailedTry(replica, 'usage_refused', null, outcome.statusCode);
      break;
    case 'failed':
      plan.onFailedTry(replica, outcome.code, outcome.cause);
      break;
    case 'not_connected':
      replica.noteRefused();
      plan.onFailedTry(replica, outcome.kind, outcome.cause);
      break;
    case 'loading':
      replica.noteRefused('loading');
      plan.onFailedTry(replica, outcome.kind, null, outcome.statusCode);
      break;
    case 'reset_on_reuse':
      plan.onFailedTry(replica, outcome.kind, outcome.cause);
      break;
  }
}

import { countExclusions, decideRouteReason, type Exclusion, type Route } from '#replicas/route';
import { CandidateSet, type PrefixPopularity, type RoutingPolicy, roundRobin } from '#replicas/routing';
import type { SharedState } from '#replicas/shared';
import { Lease } from './lease.ts';
import { OpenCandidates, type PickContext } from './open-candidates.ts';
import { findRamping, type RampedCandidates, type Ramping, rampCandidates } from './ramped-candidates.ts';
import type { Replica } from './replica.ts';

export interface RotationSettings {
  /** Its cursor in shared memory. */
  readonly cursor: number;
  readonly policy: RoutingPolicy;
  readonly popularity: PrefixPopularity;
  /** Whether `max_inflight` holds for its requests. */
  readonly isLimited: boolean;
}

/** The undrained candidates at one version of the shared state. */
interface Eligible {
  readonly version: number;
  readonly ok: CandidateSet;
  /** Those of `ok` that may be on a ramp; null: none. */
  readonly ramping: Ramping | null;
  /** Tried when no other can be. */
  readonly failing: CandidateSet;
  /** What all requests have in common that nothing else keeps from a candidate. */
  readonly plain: PlainRoutes;
}

/** The routes of such requests, made once: nearly every request has one of them. */
interface PlainRoutes {
  readonly facts: Parameters<typeof decideRouteReason>[0];
  readonly ruledOut: Route['ruledOut'];
  readonly byReason: Map<Route['reason'], Route>;
}

/** The choice of one request. */
interface Choice {
  readonly index: number;
  readonly failing: Parameters<typeof decideRouteReason>[0]['failing'];
  /** Null: no ramp has made a difference. */
  readonly ramped: RampedCandidates | null;
  readonly eligible: Eligible;
}

/** The route to the one replica that has what a request is about. */
export const ROUTE_HOME: Route = { reason: 'response_home', candidates: 1, ruledOut: null };

/** Of more candidates, those at their `max_inflight` are not counted for each request: to look at each takes 30 ns. */
const MAX_LOOKED_AT = 256;

/**
 * The candidates for one model in configured order, and the cursor that all threads share. The cursor is left after the
 * last replica picked, so that one that is skipped, because it is drained or was tried, does not move the others.
 */
export class Rotation {
  readonly candidates: readonly Replica[];
  readonly popularity: PrefixPopularity;
  /** Whether a candidate may take a member's name in another case for its own. */
  readonly mayFoldCase: boolean;
  readonly #settings: RotationSettings;
  readonly #shared: SharedState;
  /** Whether each request counts who is at its `max_inflight`. */
  readonly #countsLimits: boolean;
  /** Derived again when drains or health have changed, so that a pick costs the same however many are drained. */
  #eligible: Eligible | null = null;

  constructor(candidates: readonly Replica[], settings: RotationSettings, shared: SharedState) {
    this.candidates = candidates;
    this.popularity = settings.popularity;
    this.mayFoldCase = candidates.some((candidate) => candidate.mayFoldCase);
    this.#settings = settings;
    this.#shared = shared;
    this.#countsLimits =
      settings.isLimited &&
      candidates.length <= MAX_LOOKED_AT &&
      candidates.some(({ config }) => config.maxInflight !== null);
  }

  /**
   * A lease on a candidate that is not drained, not tried and not at its `max_inflight`; the cursor moves past it. Null if
   * there is none, or if requests that have waited longer come first.
   */
  pick(context: PickContext): Lease | null {
    const { cursor, policy, isLimited } = this.#settings;
    const candidates = new OpenCandidates(this.candidates, context, isLimited);
    const first = this.#deriveEligible();
    const ramped = first.ramping === null ? null : this.#onRamp(first, first.ramping, candidates);
    for (;;) {
      const eligible = this.#deriveEligible();
      const { ok, failing } = eligible;
      const retriedIndex = failing.size === 0 ? null : this.#claimRetry(failing, candidates);
      const retried = retriedIndex === null ? undefined : this.candidates[retriedIndex];
      if (retriedIndex !== null && retried !== undefined && this.#begin(retried)) {
        const choice: Choice = { index: retriedIndex, failing: 'retry', ramped: null, eligible };
        return new Lease(retried, this.#toRoute(choice, candidates, context));
      }
      const start = this.#shared.cursorAt(cursor);
      const onRamp = ramped && policy.choose(ok, start, ramped, context.prefixKey);
      const byPolicy = onRamp ?? policy.choose(ok, start, candidates, context.prefixKey);
      const index = byPolicy ?? roundRobin(failing, start, candidates);
      const replica = index === null ? undefined : this.candidates[index];
      if (index === null || replica === undefined) return null;
      const next = (index + 1) % this.candidates.length;
      // If another thread has moved the cursor, pick again.
      if (!this.#shared.moveCursor(cursor, start, next) || !this.#begin(replica)) continue;
      const isPlain = onRamp === null && byPolicy !== null && context.tried.size === 0 && !this.#countsLimits;
      const route = isPlain
        ? this.#toPlainRoute(index, eligible, candidates, context)
        : this.#toRoute(
            {
              index,
              failing: byPolicy === null ? 'last' : 'no',
              ramped: onRamp === null ? null : ramped,
              eligible,
            },
            candidates,
            context,
          );
      ramped?.noteTaken(index);
      return new Lease(replica, route);
    }
  }

  /** The route of a request from which only drains and failures have kept candidates. */
  #toPlainRoute(
    index: number,
    { ok, plain }: Eligible,
    candidates: OpenCandidates,
    { prefixKey }: PickContext,
  ): Route {
    const { facts, ruledOut, byReason } = plain;
    const reason = decideRouteReason(facts, this.#settings.policy.reasonOf(ok, index, candidates, prefixKey));
    let route = byReason.get(reason);
    if (route === undefined) {
      route = { reason, candidates: facts.candidates, ruledOut };
      byReason.set(reason, route);
    }
    return route;
  }

  /** The route of any other request: it looks at each candidate. */
  #toRoute(
    { index, failing, ramped, eligible: { ok } }: Choice,
    candidates: OpenCandidates,
    context: PickContext,
  ): Route {
    if (context.isForOne) return ROUTE_HOME;
    const exclusions = this.candidates.map((replica, at) => {
      if (at === index) return null;
      const exclusion = this.#exclusionOf(replica, context);
      if (exclusion !== null) return failing === 'last' && isOfHealth(exclusion) ? null : exclusion;
      return ramped === null || ramped.isOpen(at) ? null : 'ramping';
    });
    const { candidates: count, ruledOut } = countExclusions(exclusions);
    const facts = {
      hasFailed: context.tried.size > 0,
      failing,
      candidates: count,
      isRamping: ramped?.isRamping(index) === true,
    };
    const byPolicy =
      failing === 'no'
        ? this.#settings.policy.reasonOf(ok, index, candidates, context.prefixKey)
        : 'none_healthy';
    return { reason: decideRouteReason(facts, byPolicy), candidates: count, ruledOut };
  }

  /** What rules a replica out for a request, besides ramps. */
  #exclusionOf(replica: Replica, { tried, ticket }: PickContext): Exclusion | null {
    if (tried.has(replica)) return 'tried';
    const lasting = toLastingExclusion(replica);
    if (lasting !== null) return lasting;
    return this.#settings.isLimited && !replica.hasRoomFor(ticket) ? 'at_limit' : null;
  }

  /** The candidates with their ramps, after this request has counted; null once all ramps are at their end. */
  #onRamp(eligible: Eligible, ramping: Ramping, candidates: OpenCandidates): RampedCandidates | null {
    const ramped = rampCandidates(candidates, ramping, eligible.ok, this.#shared.ramps);
    if (ramped === null) this.#eligible = { ...eligible, ramping: null };
    return ramped;
  }

  /**
   * Counts a request in flight on this candidate, wherever the cursor is, and leaves the cursor there. `busy`: it is at
   * its `max_inflight`. Null: it is no candidate, was tried or is drained.
   */
  pickOne(replica: Replica, context: PickContext): Replica | 'busy' | null {
    if (!this.candidates.includes(replica) || context.tried.has(replica) || replica.isDrained) return null;
    const hasRoom = !this.#settings.isLimited || replica.hasRoomFor(context.ticket);
    return hasRoom && this.#begin(replica) ? replica : 'busy';
  }

  /** A failing candidate that this request must try, without moving the cursor: see `HealthTable.claimRetry`. */
  #claimRetry(failing: CandidateSet, candidates: OpenCandidates): number | null {
    const isOpen = (index: number) =>
      candidates.isOpen(index) && this.candidates[index]?.claimRetry() === true;
    return roundRobin(failing, 0, { isOpen });
  }

  /** Counts a request in flight. False: another thread took the last unit of its `max_inflight`. */
  #begin(replica: Replica): boolean {
    if (this.#settings.isLimited) return replica.tryBegin();
    replica.begin();
    return true;
  }

  /** Whether a candidate is neither drained nor tried, whatever it has in flight. */
  hasUntried(tried: PickContext['tried']): boolean {
    return this.candidates.some((replica) => !replica.isDrained && !tried.has(replica));
  }

  #deriveEligible(): Eligible {
    const version = this.#shared.eligibilityVersion;
    if (this.#eligible?.version === version) return this.#eligible;
    const { candidates } = this;
    const undrained = (isFailing: boolean) =>
      new CandidateSet(candidates.length, (index) => {
        const replica = candidates[index];
        return replica?.isDrained === false && replica.isFailing === isFailing;
      });
    const ok = undrained(false);
    const ramping = findRamping(candidates, ok, this.#shared.ramps);
    const { ruledOut } = countExclusions(candidates.map(toLastingExclusion));
    const facts = { hasFailed: false, failing: 'no', candidates: ok.size, isRamping: false } as const;
    const plain = { facts, ruledOut, byReason: new Map() };
    this.#eligible = { version, ok, ramping, failing: undrained(true), plain };
    return this.#eligible;
  }
}

/** What rules a replica out until a drain or its health changes. */
function toLastingExclusion(replica: Replica): 'drained' | 'unreachable' | 'failing' | null {
  if (replica.isDrained) return 'drained';
  if (!replica.isFailing) return null;
  return replica.isUnreachable ? 'unreachable' : 'failing';
}

/** Whether such a replica is tried when no other can be. */
function isOfHealth(exclusion: Exclusion): boolean {
  return exclusion === 'unreachable' || exclusion === 'failing';
}

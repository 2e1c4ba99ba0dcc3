import { StartError } from '#base';
import type { RolloutFacts } from '#rollout-board/facts';
import type { GatewayIdentity } from '../gateways/gateway-identity.ts';
import type { RolloutState } from '../progress-file/state-file.ts';
import type { RolloutSettings } from '../settings.ts';
import type { ShownRollout } from './read-rollout.ts';

/** Who restarts replicas. */
export function toRestarter({
  exec,
  isWatched,
}: Pick<RolloutSettings, 'exec' | 'isWatched'>): RolloutFacts['plan']['restarted_by'] {
  if (exec !== null) return 'command';
  return isWatched ? 'elsewhere' : 'person';
}

/** How a rollout is carried out, as gateways keep it: without its commands. */
export function toPlanFacts(settings: RolloutSettings, accepted: readonly string[]): RolloutFacts['plan'] {
  return {
    verdict: settings.verdict,
    max_unavailable: settings.maxUnavailable,
    ramp_ms: settings.rampMs,
    drain_ms: settings.drainMs,
    restart_ms: settings.restartMs,
    compare_ms: settings.compareMs,
    is_probed: settings.isProbed,
    is_forced: settings.isForced,
    reason: settings.reason,
    restarted_by: toRestarter(settings),
    has_rollback: settings.onBad !== null,
    after_rollback: settings.onBadThen,
    shadow: settings.shadow,
    accepted,
  };
}

/** The commands that a rollout needs anew where it goes on, and the addresses of its gateways there. */
type Known = Pick<RolloutSettings, 'admins' | 'configPath' | 'exec' | 'onBad'>;

/**
 * A rollout that began elsewhere, as the gateways know it. Throws a StartError if a command is missing: gateways do not
 * keep commands.
 */
export function toRolloutState(
  shown: ShownRollout,
  known: Known,
  gateways: readonly GatewayIdentity[],
): RolloutState {
  const { plan } = shown;
  const missing =
    plan.restarted_by === 'command' && known.exec === null
      ? '--exec'
      : plan.has_rollback && known.onBad === null
        ? '--on-bad'
        : null;
  if (missing !== null) {
    throw new StartError(`the command of ${missing} is known only where the rollout began: give it again`);
  }
  return {
    version: 2,
    traceId: shown.trace_id,
    rootSpanId: shown.root_span_id,
    givenUp: shown.given_up,
    settings: {
      ...known,
      isWatched: plan.restarted_by === 'elsewhere',
      isProbed: plan.is_probed,
      maxUnavailable: plan.max_unavailable,
      verdict: plan.verdict,
      rampMs: plan.ramp_ms,
      drainMs: plan.drain_ms,
      restartMs: plan.restart_ms,
      compareMs: plan.compare_ms,
      isForced: plan.is_forced,
      reason: plan.reason,
      shadow: plan.shadow,
      onBadThen: plan.after_rollback,
    },
    gateways,
    // Whether a command still runs is known only on the machine where it was begun.
    replicas: shown.replicas.map(({ name, stage, text }) => ({ name, stage, sentence: text, command: null })),
    accepted: plan.accepted,
    startedAt: shown.started_at,
    run: shown.run,
    driverId: null,
  };
}

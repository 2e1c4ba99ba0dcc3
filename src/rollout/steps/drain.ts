import { setTimeout as sleep } from 'node:timers/promises';
import { UnreachableError } from '#cli/admin-client';
import { printDuration } from '#config/values';
import { toReason, toReasonOfUndrain } from '#rollout-board/facts';
import { DrainRefused, type RolloutGateways } from '../gateways/gateways.ts';
import { findForeignDrain, type ReplicaView } from '../gateways/replica-view.ts';
import type { ReplicaState } from '../progress-file/state-file.ts';
import type { RollContext } from '../roll-context.ts';
import { RolloutStop } from '../stop.ts';

const POLL_MS = 250;

/** Drains a replica on all gateways and waits until it is safe to stop, unless another rollout is under way. */
export async function drain(state: ReplicaState, context: RollContext): Promise<ReplicaView> {
  const { name, stage } = state;
  const { gateways, settings, marks, reporter, signal, store } = context;
  const checkForeign = (replicas: readonly ReplicaView[] | null) => {
    const foreign = replicas === null ? null : findForeignDrain(name, replicas, marks);
    if (foreign !== null) throw new DrainRefused(`another rollout has drained ${foreign}`);
  };
  reporter.show(name, 'draining', 'is being drained');
  try {
    checkForeign(await lookAtReplicas(name, gateways));
    if (stage === 'waiting') await store(name, { stage: 'draining' });
    const reason = toReason(settings.reason, marks[0]);
    const warnings = await gateways.drain(name, { reason, isForced: settings.isForced });
    for (const warning of warnings) reporter.say(`${name}: ${warning}`);
  } catch (error) {
    // Otherwise it may be drained: a later run goes on with it.
    if (error instanceof DrainRefused && stage === 'waiting') await store(name, { stage: 'waiting' });
    if (error instanceof UnreachableError) {
      throw new RolloutStop(signal.aborted ? 'interrupted' : 'failed', `${error.message}; it may be drained`);
    }
    throw error;
  }
  // Two rollouts that began at once see each other here at the latest, because the drain is known everywhere.
  return await untilSafeToStop(name, context, (replicas) =>
    giveWay(name, context, () => checkForeign(replicas)),
  );
}

/**
 * Waits until a drained replica is safe to stop, and checks then that it may be stopped. Throws a RolloutStop if that takes
 * too long, somebody undrains it, or the signal aborts.
 */
export async function untilSafeToStop(
  name: string,
  { gateways, settings, reporter, signal }: RollContext,
  check: (replicas: readonly ReplicaView[]) => Promise<void> = async () => undefined,
): Promise<ReplicaView> {
  const endMs = performance.now() + settings.drainMs;
  for (;;) {
    const replicas = await lookAtReplicas(name, gateways);
    const view = replicas?.find((replica) => replica.name === name);
    if (view?.isDrained === false) throw new RolloutStop('failed', 'was undrained by somebody else');
    if (replicas !== null && view?.isSafeToStop === true) {
      await check(replicas);
      return view;
    }
    const left = `${view?.inflight ?? '?'} in flight`;
    if (signal.aborted) throw new RolloutStop('interrupted', `is drained, with ${left}`);
    if (performance.now() >= endMs) {
      const limit = printDuration(settings.drainMs);
      throw new RolloutStop('not_idle', `is drained, but not safe to stop after ${limit}: ${left}`);
    }
    reporter.show(name, 'draining', `is drained, ${left}`);
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Takes a drain back if the check says that another rollout is under way. */
async function giveWay(
  name: string,
  { gateways, settings, store }: RollContext,
  check: () => void,
): Promise<void> {
  try {
    check();
  } catch (error) {
    await gateways.undrain(name, { reason: toReasonOfUndrain(settings.reason), ramp: '0s' });
    await store(name, { stage: 'waiting' });
    throw error;
  }
}

/** Null while the gateway does not answer. */
async function lookAtReplicas(
  name: string,
  gateways: RolloutGateways,
): Promise<readonly ReplicaView[] | null> {
  try {
    const replicas = await gateways.replicas();
    if (!replicas.some((replica) => replica.name === name)) {
      throw new RolloutStop('failed', 'is not a replica of this gateway any more');
    }
    return replicas;
  } catch (error) {
    if (error instanceof UnreachableError) return null;
    throw error;
  }
}

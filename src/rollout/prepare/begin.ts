import { StartError } from '#base';
import { toMark } from '#rollout-board/facts';
import type { GatewayIdentity } from '../gateways/gateway-identity.ts';
import type { ReplicaView } from '../gateways/replica-view.ts';
import type { RolloutState } from '../progress-file/state-file.ts';
import { newSpanId, newTraceId } from '../rollout-trace.ts';
import type { RolloutSettings } from '../settings.ts';
import { findUnservedModel, planRollout, type Selection } from './plan.ts';

/** What a new rollout is made of. */
interface Beginning {
  readonly selection: Selection;
  readonly settings: RolloutSettings;
  readonly accepted: readonly string[];
  readonly gateways: readonly GatewayIdentity[];
  readonly replicas: readonly ReplicaView[];
  /** The rollout that it replaces, if its file was there. */
  readonly replaced: RolloutState | null;
}

/** A rollout that has not begun, and what to say about it. */
interface Begun {
  readonly state: RolloutState;
  readonly say: readonly string[];
  /** Replicas that the replaced rollout has drained, and that this one leaves alone. */
  readonly leftBehind: readonly string[];
}

/** Plans a new rollout. Throws a UsageError or a StartError. */
export function beginRollout(beginning: Beginning): Begun {
  const { selection, settings, accepted, gateways, replicas, replaced } = beginning;
  const givenUp = replaced === null ? [] : [replaced.traceId, ...replaced.givenUp];
  const { names, leftAlone } = planRollout(selection, replicas);
  const leftBehind = findDrainedBy(givenUp, replicas).filter((name) => !names.includes(name));
  const unserved = settings.isForced ? null : findUnservedModel(names, settings.maxUnavailable, replicas);
  if (unserved !== null) throw new StartError(`nothing was drained: ${unserved} (--force rolls anyway)`);
  const state = {
    version: 2 as const,
    traceId: newTraceId(),
    rootSpanId: newSpanId(),
    givenUp,
    settings,
    gateways,
    replicas: names.map((name) => ({ name, stage: 'waiting' as const, sentence: null, command: null })),
    accepted,
    startedAt: new Date().toISOString(),
    run: 1,
    driverId: null,
  };
  const left = leftBehind.join(', ');
  const alone = leftAlone.join(', ');
  const say = [
    ...(left === '' ? [] : [`still drained by the rollout that is given up: ${left}`]),
    ...(alone === '' ? [] : [`left alone, because drained or a shadow: ${alone}`]),
  ];
  return { state, say, leftBehind };
}

/** The names of the replicas that these rollouts have drained. */
function findDrainedBy(traceIds: readonly string[], replicas: readonly ReplicaView[]): readonly string[] {
  const marks = traceIds.map(toMark);
  return replicas
    .filter(({ drainedBy }) => drainedBy.some((mark) => marks.includes(mark)))
    .map(({ name }) => name);
}

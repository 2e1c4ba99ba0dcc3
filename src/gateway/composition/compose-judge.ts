import { GatewayJudge, JudgeExchange, PairLog, RequestRing, type RingCollaborators } from '#comparisons';
import type { Telemetry } from '#otel';
import type { ReplicaControl } from '#replicas/control';
import type { RegisteredReplica } from '#replicas/registry';
import { toFleetChannel } from './fleet-channel.ts';
import type { Composition } from './gateway-collaborators.ts';

/** What compares replicas, and what keeps the requests for it. */
interface Judging {
  readonly ring: RequestRing;
  readonly pairLog: PairLog;
  readonly judge: GatewayJudge;
  readonly isOfPresent: RingCollaborators['isOfPresent'];
}

/** Composes the judge. Every request is kept for a while, so that who asks first gets an answer at once. */
export async function composeJudge(
  { inEffect, collaborators: { log }, parts, loadChannels }: Composition,
  replicas: ReplicaControl,
  { instanceId }: Pick<Telemetry, 'instanceId'>,
): Promise<Judging> {
  const { registry } = replicas;
  const find = createFinder(() => registry.replicas);
  const isOfPresent: RingCollaborators['isOfPresent'] = ({ replica, e2eMs }) =>
    performance.now() - e2eMs >= (find(replica)?.knownSinceMs ?? 0);
  const ring = new RequestRing({ isWarm: (name) => (find(name)?.ramp ?? null) === null, isOfPresent });
  const listPods = (labels: readonly string[]) => replicas.listPods(labels);
  const pairLog = new PairLog({ sinceMsOf: (name) => find(name)?.roleSinceMs ?? 0 });
  const openChannel = await toFleetChannel(loadChannels, 'verdicts', (reason) =>
    log.warn({ reason }, 'the server does not permit to share verdicts: see fleet.md'),
  );
  const judge = new GatewayJudge({
    ring,
    pairLog,
    registry,
    listPods,
    routingPolicy: () => inEffect.config.routing.policy,
    currency: inEffect.config.currency,
    exchange: openChannel === null ? null : new JudgeExchange(openChannel, instanceId),
  });
  parts.add('watches', { start: () => judge.start() });
  parts.add('workers', { stop: () => judge.stop() });
  return { ring, pairLog, judge, isOfPresent };
}

/** Finds replicas by their names in one step: it is called for every request. A change makes another list. */
function createFinder(
  list: () => readonly RegisteredReplica[],
): (name: string) => RegisteredReplica | undefined {
  let known = list();
  let byName = new Map(known.map((replica) => [replica.name, replica]));
  return (name) => {
    const present = list();
    if (present !== known) {
      known = present;
      byName = new Map(present.map((replica) => [replica.name, replica]));
    }
    return byName.get(name);
  };
}

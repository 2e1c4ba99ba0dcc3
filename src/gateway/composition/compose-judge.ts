import { GatewayJudge, RequestRing } from '#comparisons';
import type { RegisteredReplica, ReplicaControl } from '#replicas/control';

/** What compares replicas, and what keeps the requests for it. */
interface Judging {
  readonly ring: RequestRing;
  readonly judge: GatewayJudge;
}

/** Composes the judge. Every request is kept for a while, so that who asks first gets an answer at once. */
export function composeJudge(replicas: ReplicaControl, routingPolicy: () => string): Judging {
  const { registry } = replicas;
  const find = createFinder(() => registry.replicas);
  const ring = new RequestRing({ isWarm: (name) => (find(name)?.ramp ?? null) === null });
  const listPods = (labels: readonly string[]) => replicas.listPods(labels);
  return { ring, judge: new GatewayJudge({ ring, registry, routingPolicy, listPods }) };
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

import type { ReplicaControl } from '#replicas/control';
import type { DataPlane } from '../composition/compose-data-plane.ts';
import type { Composition } from '../composition/gateway-collaborators.ts';
import { addMachineConditions } from './machine-conditions.ts';
import { createModelProducer } from './model-conditions.ts';
import { createReplicaProducer } from './replica-conditions.ts';
import { createSourceProducer } from './source-conditions.ts';

interface Watched {
  readonly replicas: ReplicaControl;
  readonly dataPlane: DataPlane;
}

/** Tells the board of everything that can be seen from outside of the parts of a gateway. */
export function addProducers(composition: Composition, watched: Watched): void {
  const { board } = composition;
  const { replicas } = watched;
  board.add(createReplicaProducer(replicas.registry));
  board.add(createModelProducer(replicas));
  board.add(createSourceProducer(() => replicas.sources));
  addMachineConditions(composition, watched);
}

import { EventEmitter } from 'node:events';
import type { RecordLoss } from '#otel/ledger';
import type { EndedRecord } from '#otel/queue';
import type { AdminAction } from '#otel/span';
import type { DrainState } from '#replicas/drain-state';

/** What happens in a gateway, and whom it may concern. Listeners run at once, in the order in which they were added. */
interface Happenings {
  /** A request has ended. The encoded span is valid until the listeners return. A listener must not throw. */
  record: [EndedRecord];
  /** Records are not exported, as soon as that is known. */
  loss: [RecordLoss];
  /** An operator, or the gateway itself, has acted on replicas or on the configuration. */
  action: [AdminAction];
  /** Another gateway of the fleet has drained or undrained a replica. */
  drain: [replica: string, DrainState];
}

/** How parts of a gateway hear of each other without knowing each other. */
export class GatewayEvents extends EventEmitter<Happenings> {
  constructor() {
    super();
    // As many as there are parts: Node would take more than ten for a leak, and say so on standard error.
    this.setMaxListeners(0);
  }
}

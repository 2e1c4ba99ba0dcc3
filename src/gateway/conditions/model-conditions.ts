import type { Finding, Producer } from '#conditions';
import { toShownName } from '#otel/base';
import type { ReplicaControl } from '#replicas/control';

/** Models that no replica can serve, or only one of several. */
export function createModelProducer(replicas: Pick<ReplicaControl, 'models'>): Producer {
  return function* (): Generator<Finding> {
    for (const { model, known, available, well, drained } of replicas.models) {
      // Replicas choose the names.
      const subject = toShownName(model);
      if (available === 0) {
        yield { id: 'model_unavailable', subject, figures: { drained, away: known - drained } };
      } else if (known > 1 && well <= 1) {
        yield { id: 'model_on_last_replica', subject, figures: { known } };
      }
    }
  };
}

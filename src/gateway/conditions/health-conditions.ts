import type { ConditionBoard, ConditionId, Producer } from '#conditions';
import { toList } from './finding-parts.ts';

/** What health checks would have requests avoid. */
const TROUBLES: ReadonlySet<ConditionId> = new Set<ConditionId>([
  'replica_unreachable',
  'replica_tls_failed',
  'replica_wrong_server',
  'replica_attempts_failing',
  'replica_streams_silent',
]);

/** Replicas in trouble while nothing looks after them. */
export function createHealthProducer(
  hasHealth: () => boolean,
  /** Whether health checks would change anything for this replica: no client's request goes to a shadow. */
  isServing: (name: string) => boolean,
  board: Pick<ConditionBoard, 'current'>,
): Producer {
  return () => {
    if (hasHealth()) return [];
    const names = new Set(
      board.current.flatMap(({ id, subject }) => (TROUBLES.has(id) && isServing(subject) ? subject : [])),
    );
    if (names.size === 0) return [];
    return [{ id: 'health_checks_off', subject: '', figures: { replicas: toList([...names].sort(), 3) } }];
  };
}

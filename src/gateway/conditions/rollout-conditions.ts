import type { Producer } from '#conditions';
import { hasVanished, type KnownRollout, type RolloutBoard } from '#rollout-board';

/** How long a rollout that stopped is told. */
const TOLD_MS = 3_600_000;

/** Tells of rollouts that stopped in the middle, or whose driver has vanished. */
export function createRolloutProducer(
  board: Pick<RolloutBoard, 'rollouts'>,
  { nowMs, epochMs }: { readonly nowMs: () => number; readonly epochMs: () => number },
): Producer {
  return () => {
    // A replica belongs to the latest rollout that has it.
    const taken = new Set<string>();
    return board.rollouts.flatMap((known) => {
      const names = known.facts.replicas.map(({ name }) => name);
      const isReplaced = names.some((name) => taken.has(name));
      for (const name of names) taken.add(name);
      const reason = isReplaced ? null : findReason(known, nowMs(), epochMs());
      if (reason === null || !hasBegun(known)) return [];
      return [{ id: 'rollout_stopped', subject: toSubject(known), figures: { reason } } as const];
    });
  };
}

/** Why it is told; null: it is not. */
function findReason(known: KnownRollout, nowMs: number, epochMs: number): string | null {
  const { state, problem, sentence, ended_at, driver } = known.facts;
  if (hasVanished(known, nowMs)) {
    const { user, host } = driver;
    return nowMs - known.heardMs < TOLD_MS ? `${user}@${host}, who drives it, is not heard any more` : null;
  }
  const agoMs = epochMs - Date.parse(ended_at ?? '');
  return state === 'stopped' && agoMs < TOLD_MS ? (problem?.sentence ?? sentence) : null;
}

function hasBegun({ facts }: KnownRollout): boolean {
  return facts.replicas.some(({ stage }) => stage !== 'waiting');
}

/** The replica that it stopped at, or that it was at work on. */
function toSubject({ facts: { id, problem, replicas } }: KnownRollout): string {
  const underWay = replicas.find(
    ({ stage }) => !['waiting', 'done', 'skipped', 'rolled_back'].includes(stage),
  );
  return problem?.replica ?? underWay?.name ?? `rollout-${id}`;
}

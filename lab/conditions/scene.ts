import type { ConditionId } from '#conditions';
import type { GatewayProcess } from '#testkit/programs/gateway-process.ts';
import type { Stage } from './stage.ts';
import type { Surface } from './surfaces.ts';

/** A condition that is brought about in real processes, and ended again. */
export interface Scene {
  readonly id: ConditionId;
  /** As the condition names what is wrong; empty for the gateway itself. */
  readonly subject: string | RegExp;
  /** Whether it takes longer than a minute, or needs what CI has not: it is not part of the fast ones. */
  readonly isSlow?: true;
  /** Why it cannot be played here; null: it can. */
  readonly whyNot?: () => string | null;
  /** A surface that cannot tell it, such as the log of its own loss. */
  readonly without?: Surface;
  readonly play: (stage: Stage) => Promise<Play>;
}

/** A scene that is set: nothing is wrong yet. */
export interface Play {
  readonly gateway: GatewayProcess;
  /** Brings about what is wrong. Unset: it is wrong from the start of the gateway on. */
  readonly bring?: () => unknown;
  /** Mends it. Unset: nothing mends it, and it is not waited for its end. */
  readonly mend?: () => unknown;
}

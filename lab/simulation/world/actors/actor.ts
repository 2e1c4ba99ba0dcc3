import type { Owner } from '../../engine/schedule.ts';

/** Somebody in the world who is not a gateway. */
export class Actor implements Owner {
  readonly name: string;
  readonly stalledUntilMs = 0;
  hasEnded = false;

  constructor(name: string) {
    this.name = name;
  }

  /** A defect of the simulation ends it. */
  onUncaught(error: unknown): void {
    throw new Error(`the simulation fails in ${this.name}`, { cause: error });
  }
}

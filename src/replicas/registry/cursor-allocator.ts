import { cursorNameOf, groupByModel, type ModelServer } from '#replicas/routing';
import { CURSORS, MAX_CURSORS, type SharedState } from '#replicas/shared';

/** A replica that can be a candidate. */
interface Candidate extends ModelServer {
  readonly slot: number;
}

/** The shared cursor of one rotation, and the slots of its candidates. */
interface Allocation {
  readonly cursor: number;
  readonly slots: readonly number[];
}

/**
 * Assigns the shared round-robin cursors to models. When the candidates for a model change, its cursor moves to the
 * replica that would have been next, or to the first one after it that is still there.
 */
export class CursorAllocator {
  readonly #shared: SharedState;
  #ofModels: ReadonlyMap<string, Allocation> = new Map();
  #ofUnknown: Allocation = { cursor: CURSORS.unknownModels, slots: [] };
  #ofAll: Allocation = { cursor: CURSORS.all, slots: [] };
  /** This one and those above it were never used. */
  #unusedCursor: number = CURSORS.firstOfModels;
  /** The cursors freed last are reused last: workers may not have seen yet that they are free. */
  readonly #freeCursors: number[] = [];

  constructor(shared: SharedState) {
    this.#shared = shared;
  }

  /** Takes over the replicas and what they serve. Returns the cursor of each model that is served. */
  assign(replicas: readonly Candidate[]): ReadonlyMap<string, number> {
    const { byModel, ofUnknown } = groupByModel(replicas);
    this.#ofAll = this.#carry(this.#ofAll, replicas);
    this.#ofUnknown = this.#carry(this.#ofUnknown, ofUnknown);
    const cursorNames = new Map([...byModel.keys()].map((model) => [model, cursorNameOf(model, byModel)]));
    this.#carryModels(new Set(cursorNames.values()), byModel);
    const cursorOf = (cursorName: string) => this.#ofModels.get(cursorName)?.cursor ?? CURSORS.unknownModels;
    return new Map([...cursorNames].map(([model, cursorName]) => [model, cursorOf(cursorName)]));
  }

  #carryModels(models: ReadonlySet<string>, byModel: ReadonlyMap<string, readonly Candidate[]>): void {
    for (const [model, { cursor }] of this.#ofModels) {
      if (!models.has(model) && cursor !== CURSORS.unknownModels) this.#freeCursors.push(cursor);
    }
    this.#ofModels = new Map(
      [...models].map((model) => [
        model,
        this.#carry(this.#ofModels.get(model) ?? this.#allocate(), byModel.get(model) ?? []),
      ]),
    );
  }

  /** When no cursor is free, models share the cursor of unknown names. */
  #allocate(): Allocation {
    const isUnused = this.#unusedCursor < MAX_CURSORS;
    const cursor = isUnused ? this.#unusedCursor++ : (this.#freeCursors.shift() ?? CURSORS.unknownModels);
    return { cursor, slots: [] };
  }

  #carry({ cursor, slots }: Allocation, candidates: readonly Candidate[]): Allocation {
    const next = candidates.map(({ slot }) => slot);
    const isSame = next.length === slots.length && next.every((slot, index) => slot === slots[index]);
    if (isSame) return { cursor, slots };
    // A request may move the cursor at the same time: then try again.
    for (;;) {
      const before = this.#shared.cursorAt(cursor);
      if (this.#shared.moveCursor(cursor, before, carryCursor(slots, before, next))) break;
    }
    return { cursor, slots: next };
  }
}

/** The index in `next` of the first slot of `previous`, from `start` on, that is still there; 0 if none is. */
export function carryCursor(previous: readonly number[], start: number, next: readonly number[]): number {
  const indices = new Map(next.map((slot, index) => [slot, index]));
  for (let step = 0; step < previous.length; step++) {
    const index = indices.get(previous[(start + step) % previous.length] ?? -1);
    if (index !== undefined) return index;
  }
  return 0;
}

import { cursorNameOf, groupByModel, type ModelServer } from '../replicas-by-model.ts';
import { CURSORS, MAX_CURSORS, type SharedState } from '../shared/shared-state.ts';

/** A replica as far as its turns go. */
interface TakesTurns extends ModelServer {
  readonly slot: number;
}

/** The shared cursor of one rotation, and the slots of the candidates that it goes round. */
interface Turn {
  readonly cursor: number;
  readonly slots: readonly number[];
}

/**
 * The shared cursors of all rotations. When the candidates of one change, its turns go on where they were: with the
 * replica that would have been next, or the first one after it that is still there.
 */
export class CursorAllocator {
  readonly #shared: SharedState;
  #ofModels: ReadonlyMap<string, Turn> = new Map();
  #ofUnknown: Turn = { cursor: CURSORS.unknownModels, slots: [] };
  #ofAll: Turn = { cursor: CURSORS.all, slots: [] };
  /** In the order in which they became free: workers may not know yet that the last ones did. */
  readonly #freeCursors = Array.from(
    { length: MAX_CURSORS - CURSORS.firstOfModels },
    (_, index) => CURSORS.firstOfModels + index,
  );

  constructor(shared: SharedState) {
    this.#shared = shared;
  }

  /** Takes over who there is and what they serve; returns the cursor of each model that is served. */
  assign(replicas: readonly TakesTurns[]): ReadonlyMap<string, number> {
    const { byModel, ofUnknown } = groupByModel(replicas);
    this.#ofAll = this.#carry(this.#ofAll, replicas);
    this.#ofUnknown = this.#carry(this.#ofUnknown, ofUnknown);
    const turnNames = new Map([...byModel.keys()].map((model) => [model, cursorNameOf(model, byModel)]));
    this.#carryModels(new Set(turnNames.values()), byModel);
    const cursorOf = (turnName: string) => this.#ofModels.get(turnName)?.cursor ?? CURSORS.unknownModels;
    return new Map([...turnNames].map(([model, turnName]) => [model, cursorOf(turnName)]));
  }

  #carryModels(models: ReadonlySet<string>, byModel: ReadonlyMap<string, readonly TakesTurns[]>): void {
    for (const [model, { cursor }] of this.#ofModels) {
      if (!models.has(model) && cursor !== CURSORS.unknownModels) this.#freeCursors.push(cursor);
    }
    this.#ofModels = new Map(
      [...models].map((model) => [
        model,
        this.#carry(this.#ofModels.get(model) ?? this.#begin(), byModel.get(model) ?? []),
      ]),
    );
  }

  /** Beyond what there is memory for, models share the cursor of unknown names. */
  #begin(): Turn {
    return { cursor: this.#freeCursors.shift() ?? CURSORS.unknownModels, slots: [] };
  }

  #carry({ cursor, slots }: Turn, candidates: readonly TakesTurns[]): Turn {
    const next = candidates.map(({ slot }) => slot);
    const isSame = next.length === slots.length && next.every((slot, place) => slot === slots[place]);
    if (isSame) return { cursor, slots };
    // A request that takes a turn in the meantime moves it: then it is looked at again.
    for (;;) {
      const before = this.#shared.cursorAt(cursor);
      if (this.#shared.moveCursor(cursor, before, carryCursor(slots, before, next))) break;
    }
    return { cursor, slots: next };
  }
}

/** The place in `next` of the first one of `previous`, from `turn` on, that is still there; 0 if none is. */
export function carryCursor(previous: readonly number[], turn: number, next: readonly number[]): number {
  const places = new Map(next.map((slot, place) => [slot, place]));
  for (let step = 0; step < previous.length; step++) {
    const place = places.get(previous[(turn + step) % previous.length] ?? -1);
    if (place !== undefined) return place;
  }
  return 0;
}

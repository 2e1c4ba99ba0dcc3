import type { SharedTable } from '#shared-memory';

/** When a stream is silent: never before `minMs`. The rest holds while too little is known of its model (#replicas/health, stream-silence-learner.ts). */
export const SILENT_AFTER = { minMs: 5_000, firstByteMs: 60_000, gapMs: 30_000 } as const;

/** Prompts are alike if they are in the same class. Each is for prompts that are four times as long. */
const FIRST_CLASS_CHARS = 1_024;

/** One class for prompts of unknown length, the others by length. */
const SIZE_CLASSES = 8;

/** The tables, for so many kinds of streams. Zero stands for a limit that is not known. */
export function toSilenceLimitShapes(kindCount: number) {
  return {
    /** A row for each class of each kind. */
    firstByteLimits: { rowCount: kindCount * SIZE_CLASSES, columns: { ms: 'int32' } },
    /** A row for each kind. */
    gapLimits: { rowCount: kindCount, columns: { ms: 'int32' } },
  } as const;
}

type Shapes = ReturnType<typeof toSilenceLimitShapes>;
type Tables = { readonly [Name in keyof Shapes]: SharedTable<Shapes[Name]['columns']> };

/** For how long streams may be without a byte until they are silent, by the kind of stream: the cursor of its model. */
export class SilenceLimits {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** The class of a prompt with so many characters; null: their number is not known. */
  sizeClassOf(promptChars: number | null): number {
    if (promptChars === null) return 0;
    const steps = Math.ceil(Math.log2(Math.max(promptChars, 1) / FIRST_CLASS_CHARS) / 2);
    return Math.min(SIZE_CLASSES - 1, 1 + Math.max(0, steps));
  }

  /** Before the first byte of the answer to a prompt of this class. */
  firstByteMsOf(kind: number, sizeClass: number): number {
    const known = Atomics.load(this.#tables.firstByteLimits.ms, kind * SIZE_CLASSES + sizeClass);
    return known === 0 ? SILENT_AFTER.firstByteMs : known;
  }

  /** After the first byte. */
  gapMsOf(kind: number): number {
    const known = Atomics.load(this.#tables.gapLimits.ms, kind);
    return known === 0 ? SILENT_AFTER.gapMs : known;
  }

  /** Null: it is not known. */
  setFirstByte(kind: number, sizeClass: number, ms: number | null): void {
    Atomics.store(this.#tables.firstByteLimits.ms, kind * SIZE_CLASSES + sizeClass, ms ?? 0);
  }

  /** Null: it is not known. */
  setGap(kind: number, ms: number | null): void {
    Atomics.store(this.#tables.gapLimits.ms, kind, ms ?? 0);
  }

  /** Forgets what is known of a kind. */
  clear(kind: number): void {
    this.setGap(kind, null);
    for (let sizeClass = 0; sizeClass < SIZE_CLASSES; sizeClass++) this.setFirstByte(kind, sizeClass, null);
  }
}

import type { ConditionDefinition, FigureKind, Severity, SubjectKind } from './definition.ts';
import { CONDITIONS, type ConditionId } from './registry/condition-table.ts';
import { type Figures, toSentence } from './to-sentence.ts';

type ValueOf<Kind extends FigureKind> = Kind extends 'text' ? string : number;

/** That a condition is on, as a producer found it. */
interface FindingOf<Id extends ConditionId> {
  readonly id: Id;
  /**
   * The name of what is wrong; empty where there is only one, such as the gateway. Names and texts may come from clients
   * and replicas: the board shows them without controls, and cut.
   */
  readonly subject: string;
  readonly figures: {
    readonly [Name in keyof (typeof CONDITIONS)[Id]['figures']]: ValueOf<
      (typeof CONDITIONS)[Id]['figures'][Name] & FigureKind
    >;
  };
  /** When it began, if that is known: epoch milliseconds. Default: when it was first found. */
  readonly sinceEpochMs?: number;
}

/** That a condition is on, with the figures that the registry lists for it. */
export type Finding = { [Id in ConditionId]: FindingOf<Id> }[ConditionId];

/** Tells what is wrong now. Called every second: it must be quick. */
export type Producer = () => Iterable<Finding>;

/** A condition that is on. */
export interface Condition {
  readonly id: ConditionId;
  readonly severity: Severity;
  readonly subjectKind: SubjectKind;
  readonly subject: string;
  /** Epoch milliseconds. */
  readonly sinceEpochMs: number;
  readonly sentence: string;
  readonly figures: Figures;
}

/** A condition has begun or ended. */
export interface ConditionChange {
  readonly kind: 'begins' | 'ends';
  readonly condition: Condition;
}

/** What the board works with. */
export interface BoardCollaborators {
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  readonly epochMs: () => number;
  /** Makes a text from elsewhere harmless, at most so many UTF-16 units long. */
  readonly toShown: (text: string, maxChars: number) => string;
  /** Called at each begin and end. It must not throw. */
  readonly onChange: (change: ConditionChange) => void;
  /** A producer has thrown: its findings stay as they were. */
  readonly onDefect: (error: unknown) => void;
}

/** More subjects of one condition are counted under one name: names may come from clients. */
export const MAX_SUBJECTS = 100;

/** The subject of those beyond MAX_SUBJECTS. */
export const OTHER_SUBJECTS = '_OTHER';

/** The most UTF-16 units of a subject, and of a text among the figures. Longer ones are cut. */
const MAX_SUBJECT_CHARS = 256;
const MAX_TEXT_CHARS = 2_048;

const LOOK_EVERY_MS = 1_000;

/** What is known of one condition of one subject. */
interface Entry {
  readonly condition: Condition;
  /** When it was first and last found: monotonic milliseconds. */
  readonly firstMs: number;
  lastMs: number;
  /** The number of the look that found it last. */
  lastLook: number;
  isOn: boolean;
}

/**
 * What is wrong now, of which subject, since when, with its figures. Producers tell; the board alone decides when a
 * condition begins and ends, by the registry.
 */
export class ConditionBoard {
  readonly #collaborators: BoardCollaborators;
  readonly #producers: { readonly produce: Producer; found: readonly Finding[] }[] = [];
  /** What was raised and is not over. */
  readonly #raised = new Map<string, { readonly finding: Finding; readonly untilMs: number }>();
  readonly #entries = new Map<string, Entry>();
  #lookCount = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(collaborators: BoardCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Asks a producer from now on. What it does not tell any more ends. */
  add(produce: Producer): void {
    this.#producers.push({ produce, found: [] });
  }

  /** Raises a condition until it is cleared, or for as long as the registry says. Raised again, it has other figures. */
  raise(finding: Finding): void {
    const { lastsMs } = CONDITIONS[finding.id] as ConditionDefinition;
    const untilMs = lastsMs === null ? Infinity : this.#collaborators.nowMs() + lastsMs;
    const shown = this.#toShown(finding);
    this.#raised.set(keyOf(shown), { finding: shown, untilMs });
    this.look();
  }

  /** Ends what was raised; nothing if it was not. */
  clear(id: ConditionId, subject: string): void {
    if (this.#raised.delete(keyOf({ id, subject: this.#toShownSubject(subject) }))) this.look();
  }

  start(): void {
    this.look();
    this.#timer = setInterval(() => this.look(), LOOK_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The conditions that are on: the most severe first, then the oldest. */
  get current(): readonly Condition[] {
    return [...this.#entries.values()]
      .flatMap(({ condition, isOn }) => (isOn ? condition : []))
      .sort((a, b) => rankOf(a) - rankOf(b) || a.sinceEpochMs - b.sinceEpochMs);
  }

  /** Asks all producers, and begins and ends conditions. */
  look(): void {
    const nowMs = this.#collaborators.nowMs();
    this.#lookCount += 1;
    for (const finding of this.#findings(nowMs)) this.#note(finding, nowMs);
    for (const [key, entry] of this.#entries) {
      if (entry.lastLook === this.#lookCount) this.#beginInTime(entry, nowMs);
      else this.#endInTime(key, entry, nowMs);
    }
  }

  /** All findings now, one of each condition and subject, with a bounded number of subjects. */
  #findings(nowMs: number): Iterable<Finding> {
    const found = new Map<string, Finding>();
    const counts = new Map<ConditionId, number>();
    const add = (finding: Finding) => {
      const key = keyOf(finding);
      if (found.has(key)) return;
      const count = (counts.get(finding.id) ?? 0) + 1;
      counts.set(finding.id, count);
      if (count <= MAX_SUBJECTS) found.set(key, finding);
      else {
        const other = { ...finding, subject: OTHER_SUBJECTS };
        found.set(keyOf(other), other);
      }
    };
    for (const [key, { finding, untilMs }] of this.#raised) {
      if (untilMs <= nowMs) this.#raised.delete(key);
      else add(finding);
    }
    for (const producer of this.#producers) {
      try {
        producer.found = Array.from(producer.produce(), (finding) => this.#toShown(finding));
      } catch (error) {
        this.#collaborators.onDefect(error);
      }
      for (const finding of producer.found) add(finding);
    }
    return found.values();
  }

  /** Without what has an effect on a terminal, a page or a log. No surface needs to know where a name comes from. */
  #toShown(finding: Finding): Finding {
    const { toShown } = this.#collaborators;
    const figures = Object.entries(finding.figures).map(([name, value]) => [
      name,
      typeof value === 'string' ? toShown(value, MAX_TEXT_CHARS) : value,
    ]);
    const subject = this.#toShownSubject(finding.subject);
    return { ...finding, subject, figures: Object.fromEntries(figures) };
  }

  #toShownSubject(subject: string): string {
    return this.#collaborators.toShown(subject, MAX_SUBJECT_CHARS);
  }

  #note(finding: Finding, nowMs: number): void {
    const key = keyOf(finding);
    const known = this.#entries.get(key);
    const epochMs = this.#collaborators.epochMs();
    const told = known?.condition.sinceEpochMs ?? finding.sinceEpochMs ?? epochMs;
    // The clock may have been set back since then: none began in the future.
    const sinceEpochMs = told <= epochMs ? told : epochMs - (nowMs - (known?.firstMs ?? nowMs));
    this.#entries.set(key, {
      condition: toCondition(finding, sinceEpochMs),
      firstMs: known?.firstMs ?? nowMs,
      lastMs: nowMs,
      lastLook: this.#lookCount,
      isOn: known?.isOn ?? false,
    });
  }

  #beginInTime(entry: Entry, nowMs: number): void {
    const { afterMs } = CONDITIONS[entry.condition.id];
    if (entry.isOn || nowMs - entry.firstMs < afterMs) return;
    entry.isOn = true;
    this.#collaborators.onChange({ kind: 'begins', condition: entry.condition });
  }

  #endInTime(key: string, entry: Entry, nowMs: number): void {
    const { untilMs } = CONDITIONS[entry.condition.id];
    if (entry.isOn && nowMs - entry.lastMs < untilMs) return;
    this.#entries.delete(key);
    if (entry.isOn) this.#collaborators.onChange({ kind: 'ends', condition: entry.condition });
  }
}

function keyOf({ id, subject }: Pick<Finding, 'id' | 'subject'>): string {
  return `${id} ${subject}`;
}

const RANKS: Readonly<Record<Severity, number>> = { critical: 0, warning: 1, notice: 2 };

function rankOf({ severity }: Condition): number {
  return RANKS[severity];
}

function toCondition({ id, subject, figures }: Finding, sinceEpochMs: number): Condition {
  const definition: ConditionDefinition = CONDITIONS[id];
  const { severity, subject: subjectKind, title } = definition;
  const sentence =
    subject === OTHER_SUBJECTS ? `${title} (and further ones)` : toSentence(definition, subject, figures);
  return { id, severity, subjectKind, subject, sinceEpochMs, sentence, figures };
}

import type { UsageFigures } from '../usage-tally.ts';

/** What the engine calls a response, and the model that made it. */
export interface ResponseIdentity {
  readonly id: string | null;
  readonly model: string | null;
}

/** What a whole answer says, without any of its text. A stream's event says the same and more. */
export interface AnswerFacts {
  /** Null if it was not asked for, or is not there. */
  readonly identity: ResponseIdentity | null;
  readonly usage: UsageFigures | null;
  /** The engine's own numbers. */
  readonly timings: Readonly<Record<string, number>> | null;
  /** The choices that are complete. */
  readonly finished: readonly FinishedChoice[];
  /** Whether the engine says that it is not over and goes on. Absent: it says nothing of the kind. */
  readonly isOpen?: boolean;
}

/** A choice that is complete, and why. */
export interface FinishedChoice {
  readonly index: number;
  readonly reason: string;
}

/** A member of the event's top-level object: from its key's opening quote to the end of its value. */
export interface MemberSpan {
  readonly start: number;
  readonly end: number;
}

/** What one event of a stream says, without any of its text. Offsets are into the event's data bytes. */
export interface StreamChunk extends AnswerFacts {
  /** `done`: the event marks the end of the stream. */
  readonly kind: 'done' | 'object' | 'other';
  /** Whether it carries generated output: content, reasoning, a tool call, a refusal, text. */
  readonly hasOutput: boolean;
  /** The bytes between the quotes of the output, if the output is one string, or of an empty string of that place. */
  readonly text: MemberSpan | null;
  readonly hasError: boolean;
  /** Whether the event has a list of choices and the list is empty. */
  readonly hasEmptyChoices: boolean;
  /** The index of the only choice; null with none or several. */
  readonly choiceIndex: number | null;
  /** The `usage` member, whatever its value; of duplicates the last one. */
  readonly usageMember: MemberSpan | null;
  readonly members: {
    readonly timings: MemberSpan | null;
    readonly systemFingerprint: MemberSpan | null;
    /** llama.cpp's `__verbose`. */
    readonly verbose: MemberSpan | null;
  };
  /** Whether it has a top-level member, other than null, that a plain usage chunk does not have. */
  readonly hasForeignMember: boolean;
  /** Offset of the object's closing brace. */
  readonly closingBrace: number;
}

/** An event that says nothing. */
export const NO_CHUNK: StreamChunk = {
  identity: null,
  usage: null,
  timings: null,
  finished: [],
  kind: 'other',
  hasOutput: false,
  text: null,
  hasError: false,
  hasEmptyChoices: false,
  choiceIndex: null,
  usageMember: null,
  members: { timings: null, systemFingerprint: null, verbose: null },
  hasForeignMember: false,
  closingBrace: -1,
};

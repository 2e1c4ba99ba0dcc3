import type { JsonCursor, MemberScanner, Span, WantedMembers } from '#json';
import type { Engine } from '#replicas/terms';
import type { FailureCode, ToErrorBody } from '../failure.ts';
import type { Flag } from '../request/inspection/engine-flags.ts';
import type { TextReader } from '../request/inspection/text-reader.ts';
import type { CurrentEventData } from '../response/events/sse.ts';
import type { AnswerFacts, StreamChunk } from '../response/events/stream-chunk.ts';
import type { UndoRules } from '../response/undo-usage.ts';
import type { UsageInStream } from '../response/usage-tally.ts';

/**
 * What distinguishes one recorded endpoint from another. Each has a file in this directory and a row in `table.ts`.
 * Its operation name is in the telemetry's own list, since `otel/` does not import `src/`.
 */
export interface RecordedEndpoint {
  /** The path without query: how requests are matched, and the record's `endpoint`. */
  readonly path: string;
  /**
   * Whether a request must name a model. If not, one that names none is for the only model that is served, or is
   * answered with `missing_model` if there are several.
   */
  readonly needsModel: boolean;
  /** Whether the body is a form (`multipart/form-data`), which is sent on as it comes, instead of JSON. */
  readonly isForm: boolean;
  /** Whether the engine keeps what it answers, so that later requests can name it by its id. */
  readonly keepsResponses: boolean;

  /** The top-level members of a request that hold its text, in the order in which they are hashed. */
  readonly textMembers: readonly string[];
  /**
   * Gives the text of a request to the reader. `values`: the value of each of `textMembers`; undefined if absent.
   * Returns false if not all of it is text: then nothing is recorded of it.
   */
  readonly readText: (reader: TextReader, values: readonly (Span | undefined)[]) => boolean;
  /** The top-level members that limit the tokens of an answer. The first one that holds a count applies. */
  readonly maxTokensMembers: readonly string[];

  /**
   * How to undo what `stream_options.include_usage` changes in a stream of this engine. Null: the endpoint does not
   * take `stream_options`, so usage is not asked for in the client's place.
   */
  readonly undoRules: ((engine: Engine, continuousUsageStats: Flag) => UndoRules) | null;

  /**
   * Reads one event of a stream: usage, output, finish reasons, the end mark, errors. `wantsIdentity`: whether to read
   * the response's id and model too. They are the same in every event that has them.
   */
  readonly readEvent: (data: CurrentEventData, cursor: JsonCursor, wantsIdentity: boolean) => StreamChunk;
  readonly usageInStream: UsageInStream;
  /** Whether a stream is complete only with its end mark. If not, a finish reason is enough. */
  readonly needsEndMark: boolean;
  /** What to look for in a whole answer. */
  readonly wantedOfAnswer: WantedMembers;
  /** Reads what was found in a whole answer. */
  readonly readAnswer: (scanner: MemberScanner, cursor: JsonCursor) => AnswerFacts;
  /** The body of an error answer of the gateway. */
  readonly toErrorBody: ToErrorBody;
  /** The event that tells clients that their stream broke off. */
  readonly toErrorEvent: (code: FailureCode) => string;
}

import type { JsonCursor, Span } from '#json';
import { Failure } from '../../failure.ts';
import { type Flag, readRawFlag } from './engine-flags.ts';
import type { NameDoubtsReader } from './member-names.ts';

/** The position and kind of a value of a top-level `stream_options` in the body. */
interface StreamOptionsSpan extends Span {
  readonly kind: ReturnType<JsonCursor['peek']>;
}

/** What a request says about stream options. Of duplicate members the last one counts, as in every engine. */
export interface StreamOptions {
  /** The value of every top-level `stream_options`, in the order of the body. */
  readonly spans: readonly StreamOptionsSpan[];
  /** The kind of the last one. */
  readonly kind: ReturnType<JsonCursor['peek']> | 'absent';
  /** Its `include_usage`. */
  readonly includeUsage: Flag;
  /** Its `continuous_usage_stats` (vLLM, SGLang). */
  readonly continuousUsageStats: Flag;
}

/**
 * How often a body may repeat `stream_options`, and `include_usage` in it, in total. The gateway remembers and changes
 * each one. A body of 32 MiB has room for over a million, which would take gigabytes.
 */
const MAX_USAGE_MEMBERS = 256;

/** For all `stream_options` of a body together: they are read again for each attempt. */
const MAX_STREAM_OPTIONS_BYTES = 64 * 1024;

const NO_STREAM_OPTIONS: StreamOptions = {
  spans: [],
  kind: 'absent',
  includeUsage: undefined,
  continuousUsageStats: undefined,
};

const MEMBERS = ['include_usage', 'continuous_usage_stats'] as const;

/** Reads every top-level `stream_options` of one body. */
export class StreamOptionsReader {
  /** Of those read so far. */
  options = NO_STREAM_OPTIONS;
  readonly #names: NameDoubtsReader;
  #usageMemberCount = 0;
  #readBytes = 0;

  constructor(names: NameDoubtsReader) {
    this.#names = names;
  }

  /** Reads the value at the cursor. Throws the Failure `large_stream_options` if there are too many of them. */
  read(cursor: JsonCursor): void {
    this.#countUsageMember();
    const kind = cursor.peek();
    const start = cursor.position;
    let includeUsage: Flag;
    let continuousUsageStats: Flag;
    if (kind === 'object') {
      cursor.beginObject();
      while (cursor.nextKey()) {
        const key = cursor.key();
        if (key === 'include_usage') {
          this.#countUsageMember();
          this.#names.noteRead(key, includeUsage !== undefined);
          includeUsage = readRawFlag(cursor);
        } else if (key === 'continuous_usage_stats') {
          this.#names.noteRead(key, continuousUsageStats !== undefined);
          continuousUsageStats = readRawFlag(cursor);
        } else {
          this.#names.noteUnread(key, MEMBERS);
          cursor.skip();
        }
      }
    } else {
      cursor.skip();
    }
    this.#readBytes += cursor.valueEnd - start;
    if (this.#readBytes > MAX_STREAM_OPTIONS_BYTES) throw new Failure('large_stream_options');
    const spans = [...this.options.spans, { start, end: cursor.valueEnd, kind }];
    this.options = { spans, kind, includeUsage, continuousUsageStats };
  }

  #countUsageMember(): void {
    if (++this.#usageMemberCount > MAX_USAGE_MEMBERS) throw new Failure('large_stream_options');
  }
}

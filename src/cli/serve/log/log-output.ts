import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { TextSink } from '#cli/command';
import type { LineFormat } from './text-line.ts';

/** How much of the log may wait for the reader of a pipe: some minutes of lines, and little memory. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** After lines were lost, the reader must have caught up this far. */
const ROOM_AGAIN_BYTES = MAX_WAITING_BYTES / 2;

/** After a write that failed later, such as to a pipe without a reader, the next one is not before this time. */
const TRY_AGAIN_MS = 1_000;

/** Where lines go. */
export interface LogTarget {
  /** The bytes that its reader has not taken. */
  readonly waitingBytes: number;
  /** Whether it is a terminal. */
  readonly isTTY: boolean;
  /** Writes the bytes from `start` and returns how many. Throws the system's error, or passes it to `onFailed` later. */
  write(bytes: Buffer, start: number, onFailed: (error: Error) => void): number;
}

/** Says outside of the log that lines are lost. */
type Tell = (line: string) => void;

/**
 * The standard output of a gateway that serves. A disk that is full and a reader that is slow or gone cost lines of the
 * log, never a request, and no more memory than MAX_WAITING_BYTES. The loss is told once on standard error when it
 * begins, and in the log with the number of lines when it is over.
 */
export class LogOutput implements TextSink {
  readonly #target: LogTarget;
  readonly #tell: Tell;
  /** Lines that are lost and not told of in the log. */
  #lostLines = 0;
  /** Lines that were lost since the start. */
  #allLostLines = 0;
  /** Lines that the log tells of in bytes that may still fail. */
  #toldLines = 0;
  /** Whether standard error says that lines are lost. */
  #isLossTold = false;
  #reason = '';
  #triesAgainAtMs = Number.NEGATIVE_INFINITY;
  /** Whether the last line was written in part. */
  #isTorn = false;
  #format: LineFormat = (jsonLine) => jsonLine;

  constructor(target: LogTarget, tell: Tell) {
    this.#target = target;
    this.#tell = tell;
  }

  get isTTY(): boolean {
    return this.#target.isTTY;
  }

  get loss(): { readonly lost: number; readonly reason: string } {
    return { lost: this.#allLostLines, reason: this.#reason };
  }

  formatOwnLines(format: LineFormat): void {
    this.#format = format;
  }

  /** A line of the process itself, in the format of the log. */
  toLine(level: string, fields: object, msg: string): string {
    const line = { level, time: new Date().toISOString(), ...fields, msg };
    return this.#format(`${JSON.stringify(line)}\n`);
  }

  write(line: string): void {
    const reason = this.#write(line);
    if (reason !== null) this.#lose(1, reason);
  }

  #lose(lines: number, reason: string): void {
    this.#lostLines += lines;
    this.#allLostLines += 1;
    this.#reason = reason;
    if (this.#isLossTold) return;
    this.#isLossTold = true;
    this.#tell(this.toLine('error', { reason }, 'the log cannot be written: lines are lost until it can'));
  }

  /** Returns why the line is lost; null if it is not. */
  #write(line: string): string | null {
    if (performance.now() < this.#triesAgainAtMs) return this.#reason;
    const { waitingBytes } = this.#target;
    if (waitingBytes === 0 && this.#lostLines === 0) {
      this.#toldLines = 0;
      this.#isLossTold = false;
    }
    if (waitingBytes > (this.#lostLines === 0 ? MAX_WAITING_BYTES : ROOM_AGAIN_BYTES))
      return 'reader_is_slow';
    try {
      if (this.#isTorn) this.#writeWhole('\n');
      if (this.#lostLines > 0) {
        const fields = { lines: this.#lostLines, reason: this.#reason };
        this.#writeWhole(this.toLine('warn', fields, 'lines of the log were lost'));
        this.#toldLines = this.#lostLines;
        this.#lostLines = 0;
      }
      this.#writeWhole(line);
      return null;
    } catch (error) {
      return toCode(error);
    }
  }

  readonly #onFailed = (error: Error): void => {
    this.#triesAgainAtMs = performance.now() + TRY_AGAIN_MS;
    const lines = 1 + this.#toldLines;
    this.#toldLines = 0;
    this.#lose(lines, toCode(error));
  };

  #writeWhole(text: string): void {
    const bytes = Buffer.from(text);
    let at = 0;
    try {
      while (at < bytes.length) at += this.#target.write(bytes, at, this.#onFailed);
      this.#isTorn = false;
    } catch (error) {
      if (at > 0) this.#isTorn = true;
      throw error;
    }
  }
}

/** A stream of the process with its file descriptor, as the log writes to it. */
export function toLogTarget(stream: unknown, fd: number): LogTarget {
  return stream instanceof Socket ? toPipeTarget(stream) : toFileTarget(fd);
}

/** A pipe, a socket or a terminal: it waits in memory for its reader. */
function toPipeTarget(stream: Socket): LogTarget {
  return {
    get waitingBytes() {
      return stream.writableLength;
    },
    isTTY: 'isTTY' in stream && stream.isTTY === true,
    write(bytes, start, onFailed) {
      stream.write(bytes.subarray(start), (error) => {
        if (error) onFailed(error);
      });
      return bytes.length - start;
    },
  };
}

/** A file or device. The stream that Node makes of it writes nothing any more after one error. */
function toFileTarget(fd: number): LogTarget {
  return { waitingBytes: 0, isTTY: false, write: (bytes, start) => writeSync(fd, bytes, start) };
}

function toCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

/** What may be logged of an error. */
export interface LoggableError {
  readonly name: string;
  readonly code?: string;
  /** The stack frames only: the message above them may quote a request. */
  readonly stack: readonly string[];
  readonly cause?: LoggableError;
}

/**
 * Name, code and stack frames of an error and its causes, without messages: V8's JSON errors quote their input, and
 * system errors name addresses.
 */
export function toLoggableError(error: unknown, depth = 0): LoggableError {
  if (!(error instanceof Error)) return { name: typeof error, stack: [] };
  return {
    name: error.name,
    ...('code' in error && typeof error.code === 'string' ? { code: error.code } : {}),
    stack: toFrames(error),
    ...(error.cause === undefined || depth > 3 ? {} : { cause: toLoggableError(error.cause, depth + 1) }),
  };
}

/** Looks only below the message, because its lines may look like stack frames. */
function toFrames({ stack = '', message }: Error): readonly string[] {
  const messageAt = message === '' ? -1 : stack.indexOf(message);
  const below = messageAt === -1 ? stack : stack.slice(messageAt + message.length);
  return below
    .split('\n')
    .filter((line) => /^ {4}at /.test(line))
    .map((line) => line.trim());
}

/**
 * The gateway or a sub-command cannot start for a reason outside the configuration, such as a port in use or an
 * unwritable state_dir. `message` is one line for the operator; `cause` may hold the system's error.
 */
export class StartError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StartError';
  }
}

/** Awaits `promise`. A rejection becomes a StartError of one line: what failed, and the system's reason. */
export async function orStartError<T>(what: string, promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw new StartError(`${what}: ${reasonOf(error)}`, error);
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const code = 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') return 'the port is already in use';
  if (code === 'EACCES') return 'permission denied';
  return error.message.split('\n', 1)[0] ?? '';
}

/**
 * The gateway cannot start, for a reason outside its configuration: a port in use, an unwritable
 * state_dir. `message` is one line for the operator; `cause` may hold the system's error.
 */
export class StartError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StartError';
  }
}

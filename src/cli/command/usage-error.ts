/** The command line is wrong: exit code 2. `message` is one line. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

import { UsageError } from './command.ts';

/** What parseArgs of node:util throws, as the one line a UsageError is: its advice on quoting is left out. */
export function toUsageError(error: unknown): UsageError {
  const message = error instanceof Error ? error.message : 'invalid options';
  return new UsageError(message.split(/\n|\. To specify/, 1)[0] ?? message);
}

import type { TextSink } from '#cli/command';

/** Prints an answer of the admin API unchanged. */
export function printJson(stdout: TextSink, answer: unknown): void {
  stdout.write(`${JSON.stringify(answer, null, 2)}\n`);
}

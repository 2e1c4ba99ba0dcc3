import { type Invocation, UsageError } from '../command-line/command.ts';

/** One that is shorter can be guessed. */
const MIN_CHARS = 16;

/** The token of the admin API, and what whoever set it should know. */
export interface AdminToken {
  /** Null: there is none. */
  readonly token: string | null;
  readonly warnings: readonly string[];
}

/**
 * Reads SVC_ADMIN_TOKEN. White space around it, such as the line feed of a file, cannot come in a header, and is cut
 * off. Throws a UsageError for a token that nobody could ever send.
 */
export function readAdminToken({ SVC_ADMIN_TOKEN: given = '' }: Invocation['env']): AdminToken {
  const token = given.trim();
  if (token === '') return { token: null, warnings: [] };
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(
      'SVC_ADMIN_TOKEN can never match: it may hold printable ASCII characters, and no space',
    );
  }
  return {
    token,
    warnings: [
      ...(token === given ? [] : ['SVC_ADMIN_TOKEN has white space around it: it is taken without']),
      ...(token.length < MIN_CHARS
        ? [`SVC_ADMIN_TOKEN has fewer than ${MIN_CHARS} characters: it can be guessed`]
        : []),
    ],
  };
}

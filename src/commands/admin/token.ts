import { type Invocation, UsageError } from '../command-line/command.ts';

/** A shorter token can be guessed. */
const MIN_CHARS = 16;

/** The token of the admin API, and warnings for the operator who set it. */
export interface AdminToken {
  /** Null: the token is not set. */
  readonly token: string | null;
  readonly warnings: readonly string[];
}

/**
 * Reads SVC_ADMIN_TOKEN. Removes white space around it, such as the line feed of a file, because no header value can
 * contain it there. Throws a UsageError for a token that no client can send.
 */
export function readAdminToken({ SVC_ADMIN_TOKEN: given = '' }: Invocation['env']): AdminToken {
  const token = given.trim();
  if (token === '') return { token: null, warnings: [] };
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(
      'SVC_ADMIN_TOKEN can never match: it may contain only printable ASCII characters and no spaces',
    );
  }
  return {
    token,
    warnings: [
      ...(token === given ? [] : ['SVC_ADMIN_TOKEN has white space around it, which is ignored']),
      ...(token.length < MIN_CHARS
        ? [`SVC_ADMIN_TOKEN has fewer than ${MIN_CHARS} characters: it can be guessed`]
        : []),
    ],
  };
}

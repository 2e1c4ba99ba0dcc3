import type { AdminToken } from '#config/secrets';

/**
 * Who calls: the name and the role of the token, and which replicas it may drain if that is all it may do. `via`: the call
 * has the code of a link, or the token of a session that a link has opened; absent: it has the token itself.
 */
export interface Caller extends Omit<AdminToken, 'token'> {
  readonly via?: 'link' | 'session';
}

/** What the last request or probe has shown of a replica. */
export const REACHABILITIES = ['unknown', 'reachable', 'unreachable', 'loading'] as const;

/**
 * `reachable`: the replica answered. `unreachable`: it could not be connected to, did not answer, or said that its
 * engine has failed. `loading`: the engine loads its model. `unknown`: nothing was sent to it since the gateway started
 * or since the replica was drained or undrained.
 */
export type Reachability = (typeof REACHABILITIES)[number];

/** What the answer to a health probe shows: its status and the beginning of its body. Null: there was no answer. */
export function toReachability(
  answer: { readonly status: number; readonly text: string } | null,
): Exclude<Reachability, 'unknown'> {
  if (answer === null) return 'unreachable';
  // A server without this path, or one that wants a key for it, is reachable.
  if (answer.status < 500) return 'reachable';
  // llama.cpp: 503 unavailable_error while it loads.
  return answer.status === 503 && answer.text.includes('Loading model') ? 'loading' : 'unreachable';
}

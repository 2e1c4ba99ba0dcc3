/** What is known of whether a replica answers. */
export const REACHABILITIES = ['unknown', 'reachable', 'unreachable', 'loading'] as const;

/**
 * `reachable`: the last request, or the last probe, was answered. `unreachable`: it could not connect, or got no
 * answer, or one that says that the engine has failed. `loading`: the engine says that it loads its model. `unknown`:
 * nobody has asked since the gateway started, or since the replica was drained or undrained.
 */
export type Reachability = (typeof REACHABILITIES)[number];

/** What the answer to a health probe says: its status, and the beginning of its body. Null: there was none. */
export function toReachability(
  answer: { readonly status: number; readonly text: string } | null,
): Exclude<Reachability, 'unknown'> {
  if (answer === null) return 'unreachable';
  // A server that has no such path, or wants a key for it, answers.
  if (answer.status < 500) return 'reachable';
  // llama.cpp: 503 unavailable_error while it loads.
  return answer.status === 503 && answer.text.includes('Loading model') ? 'loading' : 'unreachable';
}

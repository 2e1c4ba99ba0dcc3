import type { Engine } from '#replicas/terms';

/** The answers after which another replica is tried. */
export interface RetryPolicy {
  readonly statuses: ReadonlySet<number>;
  /** How many further replicas one request may be sent to because of them. */
  readonly attempts: number;
}

/** What decides whether the client gets an answer. */
export interface AnswerTraits {
  readonly status: number;
  readonly isJson: boolean;
  readonly engine: Engine;
  /** Whether include_usage was inserted, so that we have to repair its refusal. */
  readonly asksUsage: boolean;
  /** Whether the request can be sent to another replica: its body was not sent as it came. */
  readonly isRepeatable: boolean;
  /** Whether the status is one of `retry.statuses`, and the request may go to another replica because of it. */
  readonly isRetried: boolean;
}

/** What becomes of an answer. */
export type Judgement = 'relay' | 'loading' | 'usage_refused' | 'status_retried';

/** How much of an answer is searched, or kept while other replicas are tried. */
export const HELD_BYTES = 64 * 1024;

/** Whether an answer is held after its head, since the client may not get it. */
export function isHeld(traits: AnswerTraits): boolean {
  return mayRefuseUsage(traits) || mayBeLoading(traits) || traits.isRetried;
}

/**
 * Judges an answer that was held.
 *
 * @param start its first bytes, at most `HELD_BYTES`
 * @param isWhole whether nothing follows them: only such an answer can be kept
 */
export function judgeHeld(traits: AnswerTraits, start: Buffer, isWhole: boolean): Judgement {
  if (mayBeLoading(traits) && isLoading(start)) return 'loading';
  if (mayRefuseUsage(traits) && start.includes('stream_options')) return 'usage_refused';
  return traits.isRetried && isWhole ? 'status_retried' : 'relay';
}

function mayRefuseUsage({ asksUsage, status }: AnswerTraits): boolean {
  return asksUsage && (status === 400 || status === 422);
}

function mayBeLoading({ status, engine, isJson, isRepeatable }: AnswerTraits): boolean {
  return status === 503 && engine === 'llamacpp' && isJson && isRepeatable;
}

/** Whether llama.cpp's server says that it is loading its model (server.cpp, `middleware_server_state`). */
function isLoading(body: Buffer): boolean {
  try {
    const { error } = JSON.parse(body.toString('utf8')) as {
      readonly error?: { readonly type?: unknown; readonly message?: unknown };
    };
    return error?.type === 'unavailable_error' && error.message === 'Loading model';
  } catch {
    return false;
  }
}

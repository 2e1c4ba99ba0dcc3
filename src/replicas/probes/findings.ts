import type { Finding } from '#replicas/reachability';

/** An answer to a probe: its status, and the beginning of its body if it was read. */
interface Answer {
  readonly status: number;
  readonly text: string;
}

/** What the answer to a health probe shows. */
export function toHealthFinding(answer: Answer): Finding {
  // A server without this path, or one that wants a key for it, is reachable.
  return answer.status < 500 ? 'reachable' : toFailure(answer);
}

/** What the answer to GET /v1/models shows. `hasList`: it is a list of models. */
export function toListFinding(answer: Answer, hasList: boolean): Finding {
  if (answer.status >= 500) return toFailure(answer);
  // A server that wants another key, or fewer requests, does not show what it is.
  const isRefusal = answer.status === 401 || answer.status === 403 || answer.status === 429;
  return hasList || isRefusal ? 'reachable' : 'not_an_engine';
}

/** Whether the answer to a health probe comes from more than a server of web pages. */
export function isHealthy({ status, text }: Answer): boolean {
  return status >= 200 && status < 300 && !text.trimStart().startsWith('<');
}

function toFailure({ status, text }: Answer): Finding {
  // llama.cpp: 503 unavailable_error while it loads.
  return status === 503 && text.includes('Loading model') ? 'loading_model' : 'engine_failed';
}

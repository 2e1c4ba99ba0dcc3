import type { ListedPodUids } from '#replicas/discovery';

/** Why it is not known which pods have some labels. */
export type PodsProblem =
  /** No entry of `replicas` is a Service of Kubernetes. */
  | { readonly code: 'no_pods' }
  /** The API server does not list the pods. */
  | { readonly code: 'pods_not_readable'; readonly failure: string; readonly isForbidden: boolean };

export interface PodLabelsCollaborators {
  /** The uids of the pods with all of these labels (`key=value`). Never rejects. */
  readonly listPods: (labels: readonly string[]) => Promise<ListedPodUids>;
  /** Monotonic. */
  readonly nowMs?: () => number;
}

/** So that calls of the admin API cost the API server little. */
const ASKED_AGAIN_AFTER_MS = 5_000;
const MAX_KEPT = 64;

/** Which pods have some labels, asked when it is needed. */
export class PodLabels {
  readonly #collaborators: Required<PodLabelsCollaborators>;
  readonly #asked = new Map<
    string,
    { readonly atMs: number; readonly answer: Promise<ReadonlySet<string> | PodsProblem> }
  >();

  constructor({ listPods, nowMs = () => performance.now() }: PodLabelsCollaborators) {
    this.#collaborators = { listPods, nowMs };
  }

  /** The uids of the pods with all of these labels, as of a few seconds ago at most. */
  async find(labels: readonly string[]): Promise<ReadonlySet<string> | PodsProblem> {
    const { listPods, nowMs } = this.#collaborators;
    const key = labels.join();
    const known = this.#asked.get(key);
    if (known !== undefined && nowMs() - known.atMs < ASKED_AGAIN_AFTER_MS) return await known.answer;
    this.#asked.delete(key);
    const answer = listPods(labels).then(toAnswer);
    this.#asked.set(key, { atMs: nowMs(), answer });
    for (const oldest of this.#asked.keys()) if (this.#asked.size > MAX_KEPT) this.#asked.delete(oldest);
    return await answer;
  }
}

function toAnswer(listed: ListedPodUids): ReadonlySet<string> | PodsProblem {
  switch (listed.kind) {
    case 'listed':
      return new Set(listed.uids);
    case 'no_source':
      return { code: 'no_pods' };
    case 'failed':
      return {
        code: 'pods_not_readable',
        failure: listed.failure,
        isForbidden: listed.failure === 'refused',
      };
  }
}

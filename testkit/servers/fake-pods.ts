/** A pod in an EndpointSlice. */
export interface FakePod {
  readonly name: string;
  readonly address: string;
  readonly uid?: string;
  /** Whether its containers are; default: yes. */
  readonly ready?: boolean;
  readonly terminating?: boolean;
  readonly node?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Its readiness gates. */
  readonly gates?: readonly string[];
  /** Whether its Service publishes its address while it is not ready. */
  readonly isPublished?: boolean;
}

/** A patch of the status of a pod, as it arrived. */
export interface FakePatch {
  readonly pod: string;
  readonly contentType: string | undefined;
  readonly body: {
    readonly metadata: { readonly uid: string };
    readonly status: { readonly conditions: readonly FakeCondition[] };
  };
}

interface FakeCondition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime?: string;
}

/** The pods of an API server: what it answers to patches of their status, and whether they are ready. */
export class FakePods {
  readonly #pods = new Map<string, FakePod>();
  /** Pods whose status may not be patched. */
  readonly forbidden = new Set<string>();
  readonly #conditions = new Map<string, Map<string, FakeCondition>>();

  put(pods: readonly FakePod[]): void {
    for (const pod of pods) this.#pods.set(pod.name, pod);
  }

  /** There is no such pod any more, whatever the slices say. */
  delete(name: string): void {
    this.#pods.delete(name);
  }

  /** The metadata of the pods with these labels: `key=value`, with commas between them. */
  list(selector: string): readonly object[] {
    const wanted = selector.split(',').map((label) => label.split('=', 2));
    return [...this.#pods.values()]
      .filter(({ labels = {} }) => wanted.every(([key = '', value]) => labels[key] === value))
      .map((pod) => ({ metadata: { name: pod.name, uid: uidOf(pod), labels: pod.labels } }));
  }

  /** The conditions that a pod got by patches. */
  conditionsOf(pod: FakePod): readonly FakeCondition[] {
    return [...(this.#conditions.get(uidOf(pod))?.values() ?? [])];
  }

  /** The status and the body of the answer, as Kubernetes 1.30 gives them. */
  patch({ pod: name, body }: FakePatch): readonly [status: number, body: object] {
    const pod = this.#pods.get(name);
    if (this.forbidden.has(name)) return [403, { kind: 'Status', code: 403, reason: 'Forbidden' }];
    if (pod === undefined) return [404, { kind: 'Status', code: 404, reason: 'NotFound' }];
    const uid = uidOf(pod);
    if (body.metadata.uid !== uid) {
      const causes = [{ reason: 'FieldValueInvalid', message: 'field is immutable', field: 'metadata.uid' }];
      return [422, { kind: 'Status', code: 422, reason: 'Invalid', details: { name, causes } }];
    }
    const conditions = this.#conditions.get(uid) ?? new Map<string, FakeCondition>();
    for (const each of body.status.conditions) {
      conditions.set(each.type, { ...conditions.get(each.type), ...each });
    }
    this.#conditions.set(uid, conditions);
    const readinessGates = pod.gates?.map((conditionType) => ({ conditionType }));
    return [
      200,
      {
        kind: 'Pod',
        apiVersion: 'v1',
        metadata: { name, namespace: 'llm', uid },
        spec: { readinessGates },
        status: { conditions: [...conditions.values()] },
      },
    ];
  }

  /** The entry of a slice. A pod is ready if its containers are, and the conditions of its gates are true. */
  toEndpoint(pod: FakePod): object {
    const { name, address, ready, terminating, node, gates = [], isPublished = false } = pod;
    const held = gates.some((gate) => !this.conditionsOf(pod).some((each) => isTrue(each, gate)));
    const serving = ready !== false && !held;
    return {
      addresses: [address],
      conditions: { ready: isPublished || (serving && !terminating), terminating, serving },
      targetRef: { kind: 'Pod', name, uid: uidOf(pod) },
      ...(node === undefined ? {} : { nodeName: node }),
    };
  }
}

function isTrue({ type, status }: FakeCondition, wanted: string): boolean {
  return type === wanted && status === 'True';
}

function uidOf({ name, uid = `uid-of-${name}` }: FakePod): string {
  return uid;
}

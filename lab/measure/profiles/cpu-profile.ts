/** A function on the stack; those in brackets are V8's. */
export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
}

/** A profile as V8 writes it. Times are in microseconds, `startTime` by the system's monotonic clock. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: CallFrame;
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
  readonly startTime: number;
}

/** What the thread did for a while: how long, and until when since the start of the profile. Microseconds. */
interface Sample {
  /** Null: it was idle. */
  readonly label: string | null;
  readonly us: number;
  readonly untilUs: number;
}

/** The samples of a profile in their order. `labelOf` gets the functions on the stack, the innermost first. */
export function* readSamples(
  { nodes, samples, timeDeltas }: CpuProfile,
  labelOf: (stack: readonly CallFrame[]) => string,
): Generator<Sample> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const stackOf = (id: number | undefined): readonly CallFrame[] => {
    const node = id === undefined ? undefined : byId.get(id);
    return node === undefined ? [] : [node.callFrame, ...stackOf(parents.get(node.id))];
  };
  const labels = new Map<number, string | null>();
  for (const { id, callFrame } of nodes)
    labels.set(id, callFrame.functionName === '(idle)' ? null : labelOf(stackOf(id)));
  let untilUs = 0;
  for (const [index, us] of timeDeltas.entries()) {
    untilUs += us;
    yield { label: labels.get(samples[index] ?? 0) ?? null, us, untilUs };
  }
}

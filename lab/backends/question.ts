import { setTimeout as sleep } from 'node:timers/promises';

/** What people look for in a backend. The text is the row of the table in docs/evidence/backends.md. */
export const VIEWS = {
  latency: 'Latency, errors',
  tokens: 'Tokens',
  firstToken: 'Time to first token',
  cost: 'Cost',
  model: 'Model',
  parameters: 'Parameters of the request',
  who: 'User, session',
  prompt: 'Agent, name of the prompt',
  route: 'Why this replica',
  text: 'Messages, evaluations of them',
} as const;

/** A key of VIEWS. */
export type View = keyof typeof VIEWS;

/**
 * `lit`: a view of the backend's own shows it. `attribute`: the backend has no view of it, and finds it by the attribute of
 * a span. `own`: it shows a figure of its own making, not that of the record. `dark`: it is empty. `text`: it is empty, because the gateway sends no text of requests.
 */
export type State = 'lit' | 'attribute' | 'own' | 'dark' | 'text';

/** How a backend is asked for one view, and what its answer has to be. */
export interface Question {
  readonly state: State;
  /** As somebody would type it. */
  readonly query: string;
  /** What the records say, or what an empty answer looks like. */
  readonly wanted: unknown;
  readonly ask: () => Promise<unknown>;
}

/** The questions of one backend. */
export type Questions = Readonly<Record<View, Question>>;

const ARRIVES_WITHIN_MS = 40_000;
const AGAIN_AFTER_MS = 250;
/** Backends round times and money. */
const ROUNDED = 0.01;

/** Asks until the answer is the wanted one. Resolves with the problem if it is another for too long, otherwise with null. */
export async function findProblem({ wanted, ask }: Question): Promise<string | null> {
  const startedAtMs = performance.now();
  for (;;) {
    const seen = await ask().catch((error: Error) => error.message);
    if (isAlike(seen, wanted)) return null;
    if (performance.now() - startedAtMs > ARRIVES_WITHIN_MS)
      return `${JSON.stringify(seen)}, not ${JSON.stringify(wanted)}`;
    await sleep(AGAIN_AFTER_MS);
  }
}

/** Whether an answer is the wanted one: whole numbers exactly, others to a hundredth. */
export function isAlike(seen: unknown, wanted: unknown): boolean {
  if (typeof wanted === 'number' && typeof seen === 'number') {
    if (Number.isInteger(wanted)) return seen === wanted;
    return Math.abs(seen - wanted) <= ROUNDED * Math.abs(wanted);
  }
  if (typeof wanted !== 'object' || wanted === null) return seen === wanted;
  if (typeof seen !== 'object' || seen === null || Array.isArray(seen) !== Array.isArray(wanted))
    return false;
  const [found, expected] = [Object.entries(seen), Object.entries(wanted)];
  return (
    found.length === expected.length &&
    expected.every(([key, value]) => key in seen && isAlike(Reflect.get(seen, key), value))
  );
}

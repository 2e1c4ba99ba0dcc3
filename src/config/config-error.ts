/** One thing that is wrong with a configuration file. None of its texts holds a secret. */
export interface ConfigProblem {
  /** Counted from 1. */
  readonly line: number;
  /** `replicas[0].url`; empty where the whole file is meant. */
  readonly keyPath: string;
  /** What is wrong: what was found, what was expected. */
  readonly text: string;
}

/** A configuration file that cannot be used. `message` has one line a problem, in the file's order. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(path: string, problems: readonly ConfigProblem[]) {
    const inOrder = problems.toSorted((a, b) => a.line - b.line);
    super(inOrder.map((problem) => toLine(path, problem)).join('\n'));
    this.name = 'ConfigError';
    this.problems = inOrder;
  }
}

function toLine(path: string, { line, keyPath, text }: ConfigProblem): string {
  return `${path}:${line}: ${keyPath === '' ? '' : `${keyPath}: `}${text}`;
}

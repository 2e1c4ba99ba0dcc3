/** One problem of a configuration file. Its texts contain no secret. */
export interface ConfigProblem {
  /** From 1. */
  readonly line: number;
  /** For example `replicas[0].url`; empty for the whole file. */
  readonly keyPath: string;
  /** What was found and what was expected. */
  readonly text: string;
}

/** A configuration file that cannot be used. `message` has one line per problem, in the order of the file. */
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

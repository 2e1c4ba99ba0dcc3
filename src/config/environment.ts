/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A text after expansion, and what stood in the way of it, in words for the reader of the file. */
export interface Expansion {
  readonly text: string;
  readonly problems: readonly string[];
}

/** Replaces each `${NAME}` by the variable's value; `$${` stands for a literal `${`. Values are not expanded again. */
export function expandVariables(text: string, env: Environment): Expansion {
  const problems: string[] = [];
  const expanded = text.replace(/\$\$\{|\$\{([^}]*)(\}?)/g, (found, name: string | undefined, end) => {
    if (name === undefined) return '${';
    if (end === '' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      problems.push(`found a broken variable reference, expected \${NAME} (or $\${ for a literal \${)`);
      return found;
    }
    // Of `constructor` the environment has what every object has.
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value === undefined) problems.push(`found \${${name}}, but the variable ${name} is not set`);
    return value ?? found;
  });
  return { text: expanded, problems };
}

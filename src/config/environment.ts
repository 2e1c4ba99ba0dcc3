/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A text after expansion, and the problems for the author of the file. */
export interface Expansion {
  readonly text: string;
  readonly problems: readonly string[];
}

/** Replaces each `${NAME}` by the value of the variable; `$${` is a literal `${`. Values are not expanded again. */
export function expandVariables(text: string, env: Environment): Expansion {
  const problems: string[] = [];
  const expanded = text.replace(/\$\$\{|\$\{([^}]*)(\}?)/g, (found, name: string | undefined, end) => {
    if (name === undefined) return '${';
    if (end === '' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      problems.push(`found an invalid variable reference, expected \${NAME} (or $\${ for a literal \${)`);
      return found;
    }
    // Every object inherits names such as `constructor`.
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value === undefined) problems.push(`found \${${name}}, but the variable ${name} is not set`);
    return value ?? found;
  });
  return { text: expanded, problems };
}

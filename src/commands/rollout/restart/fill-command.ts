import { UsageError } from '../../command-line/command.ts';

/** What a command may name of a replica. */
export interface CommandFacts {
  readonly name: string;
  readonly host: string;
  readonly port: string;
  readonly url: string;
}

const PLACEHOLDER = /\{([A-Za-z_]+)\}/y;

/** Checks that the placeholders of a command exist. Throws a UsageError. */
export function checkCommand(template: string): void {
  fillCommand(template, { name: 'n', host: 'h', port: '1', url: 'http://h:1' });
}

/**
 * Fills the placeholders of a command for the shell: whatever a value contains, it is one word, or a part of the quoted
 * text that the placeholder is in. Throws a UsageError for a placeholder that does not exist, and for a
 * value that programs could take for an option or that holds control characters.
 */
export function fillCommand(template: string, facts: CommandFacts): string {
  let quote: '' | "'" | '"' = '';
  let filled = '';
  for (let at = 0; at < template.length; ) {
    const char = template[at] ?? '';
    PLACEHOLDER.lastIndex = at;
    const found = PLACEHOLDER.exec(template);
    if (found !== null && !isBraceOfShell(template, at)) {
      filled += quoteFor(quote, valueOfPlaceholder(found[1] ?? '', facts));
      at += found[0].length;
    } else if (char === '\\' && quote !== "'") {
      filled += template.slice(at, at + 2);
      at += 2;
    } else {
      if (quote === '' && (char === "'" || char === '"')) quote = char;
      else if (char === quote) quote = '';
      filled += char;
      at++;
    }
  }
  return filled;
}

/** `${name}` is a variable of the shell. */
function isBraceOfShell(template: string, at: number): boolean {
  return template[at - 1] === '$';
}

function valueOfPlaceholder(placeholder: string, facts: CommandFacts): string {
  if (!Object.hasOwn(facts, placeholder)) {
    const known = Object.keys(facts).map((name) => `{${name}}`);
    throw new UsageError(`the command has {${placeholder}}: there are ${known.join(', ')}`);
  }
  const value = facts[placeholder as keyof CommandFacts];
  if (/^-|\p{Cc}/u.test(value)) {
    throw new UsageError(
      `the ${placeholder} of a replica cannot be part of a command: ${JSON.stringify(value).slice(0, 200)}`,
    );
  }
  return value;
}

/** Quotes a value for the place it is put in (POSIX shell, 2.2). */
function quoteFor(quote: '' | "'" | '"', value: string): string {
  if (quote === '"') return value.replace(/[\\$`"]/g, '\\$&');
  const inSingle = value.replaceAll("'", "'\\''");
  return quote === "'" ? inSingle : `'${inSingle}'`;
}

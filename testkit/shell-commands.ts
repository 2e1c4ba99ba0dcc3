/** One command of a shell snippet: its words without quotes, and without assignments before it. */
export type ShellCommand = readonly string[];

/**
 * The commands of a shell snippet, as far as documents need it: comments, line continuations, quotes, assignments,
 * redirections, and the operators between commands. `$(…)` inside double quotes is part of its word.
 */
export function readCommands(code: string): readonly ShellCommand[] {
  const joined = code.replaceAll(/\\\n/g, ' ');
  const words = joined.matchAll(
    /#.*(?=\n|$)|(?<operator>&&|\|\||[;|&\n()])|\d?>+(?:&\d|\s*\S+)|(?<word>(?:'[^']*'|"[^"]*"|\$\([^)]*\)|[^\s;|&()'"])+)/g,
  );
  const commands: string[][] = [[]];
  for (const { groups = {} } of words) {
    if (groups.operator !== undefined) commands.push([]);
    else if (groups.word !== undefined) commands.at(-1)?.push(groups.word.replaceAll(/['"]/g, ''));
  }
  return commands
    .map((command) => command.slice(command.findIndex((word) => !/^\w+=/.test(word))))
    .filter((command) => command.length > 0 && !/^\w+=/.test(command[0] ?? ''));
}

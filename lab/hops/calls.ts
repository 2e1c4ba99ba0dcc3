/** The functions that ran, by file. The number behind `@` is where the function begins, in characters. */
export type Calls = Readonly<Record<string, readonly string[]>>;

/** The calls that are in more than half of these. */
export function inMost(rounds: readonly Calls[]): Calls {
  const kept: Record<string, string[]> = {};
  for (const file of new Set(rounds.flatMap(Object.keys)))
    for (const name of new Set(rounds.flatMap((calls) => calls[file] ?? []))) {
      const count = rounds.filter((calls) => calls[file]?.includes(name)).length;
      if (count <= rounds.length / 2) continue;
      kept[file] ??= [];
      kept[file].push(name);
    }
  return kept;
}

/** The calls that are in any of these. */
export function inAny(paths: readonly Calls[]): Calls {
  const files = new Set(paths.flatMap(Object.keys));
  const namesIn = (file: string) => [...new Set(paths.flatMap((calls) => calls[file] ?? []))];
  return Object.fromEntries([...files].map((file) => [file, namesIn(file)]));
}

/** How many files and functions these are. */
export function countsOf(calls: Calls) {
  return { files: Object.keys(calls).length, functionCount: Object.values(calls).flat().length };
}

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '#testkit/programs/results.ts';
import type { MutatedRoom } from '../rooms.ts';
import { findMutants, type Mutant } from './find-mutants.ts';

/** The mutants of one source: their numbers in the room start at `firstId`. */
export interface MutatedSource {
  readonly mutants: readonly Mutant[];
  readonly firstId: number;
}

/** The mutants of a room by source. Numbers start at 1, in the order of the paths. */
export function mutantsOf({ sources }: MutatedRoom): ReadonlyMap<string, MutatedSource> {
  const byFile = new Map<string, MutatedSource>();
  let firstId = 1;
  for (const file of filesIn(sources, '.ts')) {
    const mutants = findMutants(file, readFileSync(join(ROOT, file), 'utf8'));
    byFile.set(file, { mutants, firstId });
    firstId += mutants.length;
  }
  return byFile;
}

/** The files at these paths, in their order, and in folders those whose names end so. No file comes twice. */
export function filesIn(paths: readonly string[], ending: string): readonly string[] {
  const files = paths.flatMap((path) =>
    path.endsWith('.ts') ? [path] : globSync(`${path}/**/*${ending}`, { cwd: ROOT }).toSorted(),
  );
  return [...new Set(files)];
}

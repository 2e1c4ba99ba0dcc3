import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PLANTED_FAULTS } from './planted-faults.ts';

/** What was found of a planted fault. */
export interface PlantedResult {
  readonly planted: string;
  readonly target: string;
  /** How many inputs it took. */
  readonly inputs: number;
  /** What the fuzzer says of it; null: it was not found. */
  readonly reason: string | null;
}

const PLANT = join(import.meta.dirname, 'plant.ts');

/** Plants each fault of a target, or of all (null), in a process of its own, which gets up to so many inputs. */
export async function* runPlanted(target: string | null, maxInputs: number): AsyncGenerator<PlantedResult> {
  for (const [index, fault] of PLANTED_FAULTS.entries()) {
    if (target !== null && fault.target !== target) continue;
    const args = [PLANT, String(index), String(maxInputs)];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const found = JSON.parse(stdout) as Pick<PlantedResult, 'inputs' | 'reason'>;
    yield { planted: fault.name, target: fault.target, ...found };
  }
}

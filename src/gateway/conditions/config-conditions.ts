import type { ReloadOutcome } from '#admin';
import type { ConditionBoard, Finding, Producer } from '#conditions';

type Board = Pick<ConditionBoard, 'raise' | 'clear'>;

/** Tells what came of a reload. `path`: of the file of the configuration. */
export function noteReload(board: Board, path: string, outcome: ReloadOutcome): void {
  if (outcome.kind === 'refused') {
    const { problems } = outcome;
    const figures = { reason: toReason(problems), problems: problems.length };
    board.raise({ id: 'reload_refused', subject: path, figures });
    return;
  }
  board.clear('reload_refused', path);
  const { needsRestart } = outcome;
  if (needsRestart.length === 0) board.clear('restart_needed', '');
  else board.raise({ id: 'restart_needed', subject: '', figures: { keys: toKeys(needsRestart) } });
}

/** How many problems and keys a sentence has, and how long one may be. */
const LISTED = { problems: 2, keys: 5, problemChars: 120 } as const;

/** The first problems. `gateway check` has all of them, in whole. */
function toReason(problems: readonly string[]): string {
  const listed = problems.slice(0, LISTED.problems).map(shorten);
  return [...listed, ...toRest(problems.length - listed.length)].join('; ');
}

function toKeys(keys: readonly string[]): string {
  const listed = keys.slice(0, LISTED.keys);
  return [...listed, ...toRest(keys.length - listed.length)].join(', ');
}

function toRest(count: number): readonly string[] {
  return count > 0 ? [`and ${count} more`] : [];
}

/** Cut between two words. One problem may list every key that there is. */
function shorten(problem: string): string {
  if (problem.length <= LISTED.problemChars) return problem;
  const cut = problem.slice(0, LISTED.problemChars - 1);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(' '), LISTED.problemChars / 2)).trimEnd()}…`;
}

const LOOK_EVERY_MS = 3_000;

/** Looks now and then whether the files of the configuration are those that were loaded. */
export class ConfigWatch {
  readonly #findChanged: () => Promise<readonly string[]>;
  #changed: readonly string[] = [];
  #isLooking = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(findChanged: () => Promise<readonly string[]>) {
    this.#findChanged = findChanged;
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), LOOK_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Does nothing while a look is under way: on a file system that hangs, they would pile up. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#changed = await this.#findChanged();
    this.#isLooking = false;
  }

  /** Files that have changed and are not loaded. */
  readonly produce: Producer = () =>
    this.#changed.map((subject): Finding => ({ id: 'config_not_loaded', subject, figures: {} }));
}

/** Tells the board of the files of the configuration. Returns what is to be called with what came of each reload. */
export function addConfigConditions(
  board: ConditionBoard,
  {
    path,
    findChanged,
  }: { readonly path: string; readonly findChanged?: (() => Promise<readonly string[]>) | undefined },
): { readonly watch: ConfigWatch; readonly onOutcome: (outcome: ReloadOutcome) => void } {
  const watch = new ConfigWatch(async () => (await findChanged?.()) ?? []);
  board.add(watch.produce);
  return {
    watch,
    onOutcome(outcome) {
      noteReload(board, path, outcome);
      void watch.look();
    },
  };
}

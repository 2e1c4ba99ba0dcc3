import type { ReloadOutcome } from '#admin';
import type { ConditionBoard, Finding, Producer } from '#conditions';

type Board = Pick<ConditionBoard, 'raise' | 'clear'>;

/** Tells what came of a reload. `path`: of the file of the configuration. */
export function noteReload(board: Board, path: string, outcome: ReloadOutcome): void {
  if (outcome.kind === 'refused') {
    const [first = 'unknown', ...others] = outcome.problems;
    const reason = others.length === 0 ? first : `${first}; and ${others.length} more`;
    board.raise({ id: 'reload_refused', subject: path, figures: { reason } });
    return;
  }
  board.clear('reload_refused', path);
  const keys = outcome.needsRestart.join(', ');
  if (keys === '') board.clear('restart_needed', '');
  else board.raise({ id: 'restart_needed', subject: '', figures: { keys } });
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

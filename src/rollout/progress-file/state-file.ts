import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { StartError } from '#base';
import { parseJson } from '#base/parsed';
import { COMMANDS } from '#cli/arguments';
import { UsageError } from '#cli/command';
import type { Environment } from '#config/secrets';
import { isErrno, readRegularFile, writeDurably } from '#otel/files';
import { STAGES, VERDICT_MODES } from '#rollout-board/facts';

const replicaState = z.strictObject({
  name: z.string().min(1),
  stage: z.enum(STAGES),
  sentence: z.string().nullable(),
  /** The process group of the command that restarts it, while it may run. */
  command: z.strictObject({ host: z.string(), pid: z.int().min(2) }).nullable(),
});

const settings = z.strictObject({
  admins: z.array(z.string()).readonly().nullable(),
  configPath: z.string().nullable(),
  exec: z.string().nullable(),
  isWatched: z.boolean(),
  isProbed: z.boolean(),
  maxUnavailable: z.int().min(1),
  verdict: z.enum(VERDICT_MODES),
  rampMs: z.int().min(0),
  drainMs: z.int().min(0),
  restartMs: z.int().min(0),
  compareMs: z.int().min(0),
  isForced: z.boolean(),
  reason: z.string().nullable(),
  shadow: z.string().nullable(),
  onBad: z.string().nullable(),
  onBadThen: z.enum(COMMANDS.rollout.options['on-bad-then'].words),
});

const gatewayIdentity = z.strictObject({
  address: z.string(),
  instanceId: z.string().min(1),
  fleet: z.array(z.string()).readonly(),
});

const rolloutState = z.strictObject({
  version: z.literal(2),
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  /** The span of the first run. Those of later runs are below it. */
  rootSpanId: z.string().regex(/^[0-9a-f]{16}$/),
  /** Earlier rollouts that `--new` has given up. What they have drained is no reason to stop. */
  givenUp: z.array(z.string()).readonly(),
  settings,
  /** Whose replicas they are. Others may have replicas of the same names. */
  gateways: z.array(gatewayIdentity).min(1).readonly(),
  replicas: z.array(replicaState).min(1),
  /** Replicas that a person takes as they are, whatever their verdict. */
  accepted: z.array(z.string()).readonly(),
  startedAt: z.iso.datetime(),
  /** Greater by one each time that it goes on. */
  run: z.int().min(1),
  /** What has driven its latest run; null: not known. */
  driverId: z.string().nullable(),
});

/** A rollout as far as it is. */
export type RolloutState = z.output<typeof rolloutState>;

/** One replica of a rollout. */
export type ReplicaState = RolloutState['replicas'][number];

/** Whether nothing is left to do for a replica. One that was rolled back is rolled again if the rollout stopped there. */
export function isOver(
  { stage }: Pick<ReplicaState, 'stage'>,
  { onBadThen }: Pick<RolloutState['settings'], 'onBadThen'>,
): boolean {
  return stage === 'done' || stage === 'skipped' || (stage === 'rolled_back' && onBadThen === 'continue');
}

const MAX_BYTES = 16 * 1024 ** 2;

/** The file of a rollout. It exists while the rollout is not finished. */
export interface StateFile {
  readonly path: string;
  /** Whether it is where it is looked for if nobody names one. */
  readonly isDefault: boolean;
  /** Null: there is none. Throws a StartError that names the file if it is damaged or unreadable. */
  read(): Promise<RolloutState | null>;
  /** Replaces the file as a whole. Calls are carried out in turn. */
  write(state: RolloutState): Promise<void>;
  remove(): Promise<void>;
}

/** Parses the file. Throws a StartError that names it if it is damaged. */
export function parseRolloutState(text: string, path: string): RolloutState {
  const parsed = rolloutState.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  const where = parsed.error.issues[0]?.path.join('.') ?? '';
  throw new StartError(
    `${path} is damaged${where === '' ? '' : ` at ${where}`}: look at 'gateway replicas', and begin again with --new`,
    parsed.error,
  );
}

/** The content of the file. */
export function printRolloutState(state: RolloutState): string {
  return `${JSON.stringify(state, null, 2)}\n`;
}

/** The file that the command line names, or the one in the user's folder of state (XDG base directories). */
export function openStateFile(given: string | undefined, env: Environment): StateFile {
  const path = given ?? defaultPath(env);
  let last: Promise<unknown> = Promise.resolve();
  return {
    path,
    isDefault: given === undefined,
    async read() {
      const text = await readText(path);
      if (text === null) return null;
      return parseRolloutState(text, path);
    },
    write(state) {
      const text = printRolloutState(state);
      const written = last.then(async () => {
        try {
          await mkdir(dirname(path), { recursive: true, mode: 0o700 });
          await writeDurably(path, Buffer.from(text), '.tmp');
        } catch (error) {
          const { code = 'not writable' } = error as NodeJS.ErrnoException;
          throw new StartError(`cannot write ${path} (${code})`, error);
        }
      });
      last = written.catch(() => undefined);
      return written;
    },
    async remove() {
      await last;
      await rm(path, { force: true });
    },
  };
}

function defaultPath({ XDG_STATE_HOME, HOME }: Environment): string {
  if (XDG_STATE_HOME) return join(XDG_STATE_HOME, 'spangate', 'rollout.json');
  if (HOME) return join(HOME, '.local', 'state', 'spangate', 'rollout.json');
  throw new UsageError('HOME is not set: name a file for the state of the rollout with --state');
}

async function readText(path: string): Promise<string | null> {
  try {
    return (await readRegularFile(path, MAX_BYTES)).toString('utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    const { code = 'unreadable' } = error as NodeJS.ErrnoException;
    throw new StartError(`cannot read ${path} (${code})`, error);
  }
}

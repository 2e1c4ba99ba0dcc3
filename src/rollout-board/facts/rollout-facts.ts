import { z } from 'zod';
import { withoutControls } from '#otel/base';

/**
 * How far a replica is. `restarted`: the command has ended, or the person or the engine has said so. `undrained`: it
 * serves and is compared. `held`: it is worse than its peers, and is being drained again or is drained. `rolled_back`: it
 * was worse, and serves with what `--on-bad` has made of it. `skipped`: a person has left it out.
 */
export const STAGES = [
  'waiting',
  'draining',
  'restarted',
  'undrained',
  'done',
  'held',
  'rolled_back',
  'skipped',
] as const;

/** What a replica of a rollout goes through, for people. */
const PHASES = [
  'waiting',
  'draining',
  'restarting',
  'starting',
  'ramp',
  'compare',
  'done',
  'warned',
  'stopped',
] as const;

/** What a replica of a rollout goes through, for people. */
export type Phase = (typeof PHASES)[number];

/**
 * Why a rollout stops before its end. `bad`: a replica is worse than its peers. `undecided`: it cannot be judged, for want
 * of traffic or of a peer, or because more requests may not tell. `not_idle`: it does not become safe to stop.
 * `command_failed`: what restarts it failed or took too long. `not_ready`: its engine does not come back.
 * `rollback_failed`: it is worse, and could not be rolled back. `failed`: a gateway refuses or cannot be reached, or
 * somebody else has changed the replica. `interrupted`: by who drives it. `aborted`: by anybody, for good.
 */
const STOP_KINDS = [
  'bad',
  'undecided',
  'not_idle',
  'command_failed',
  'not_ready',
  'rollback_failed',
  'failed',
  'interrupted',
  'aborted',
] as const;

/** Why a rollout stops before its end. */
export type StopKind = (typeof STOP_KINDS)[number];

/** What a rollout does when a replica is worse than its peers, or cannot be judged. */
export const VERDICT_MODES = ['strict', 'warn', 'off'] as const;

/** How a rollout is. `stopped`: it can go on. `aborted` and `done`: it cannot. */
const STATES = ['running', 'paused', 'stopped', 'aborted', 'done'] as const;

/** What people ask of a rollout. */
const ASKS = ['go', 'pause', 'abort'] as const;

const MAX_TEXT_CHARS = 512;
/** As many as there can be replicas of a gateway. */
const MAX_REPLICAS = 4_096;
const MAX_STEPS = 24;
const MAX_FIGURES = 24;

const count = () => z.int().min(0);

/** A text of people or of another machine: one line, and short. */
const line = (maxChars = MAX_TEXT_CHARS) =>
  z.string().overwrite((text) => Array.from(withoutControls(text, ' ')).slice(0, maxChars).join(''));

/** The names that replicas may have. */
const replicaName = z.string().regex(/^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}$/);

const hex = (digits: number) => z.string().regex(new RegExp(`^(?!0+$)[0-9a-f]{${digits}}$`));

/** One step of a replica that has ended. */
const stepFacts = z.object({
  step: z.string().regex(/^[a-z_]{1,32}$/),
  started_at: z.iso.datetime(),
  duration_ms: count(),
  outcome: z.string().regex(/^[a-z_]{1,32}$/),
});

const replicaFacts = z.object({
  name: replicaName,
  /** Greater with each change. Of two reports the one with the greater number holds. */
  seq: count(),
  stage: z.enum(STAGES),
  phase: z.enum(PHASES),
  /** When the phase began. */
  since: z.iso.datetime(),
  text: line(),
  /** What has been found out of it; null: nothing yet. */
  verdict: z.enum(['good', 'bad', 'undecided']).nullable(),
  /** Of its comparison, by the names that the admin API has for them. */
  figures: z
    .record(z.string().regex(/^[a-z_]{1,40}$/), z.number())
    .refine((figures) => Object.keys(figures).length <= MAX_FIGURES),
  steps: z.array(stepFacts).max(MAX_STEPS).readonly(),
});

/** Who drives a rollout: a process on somebody's machine. */
const driver = z.object({
  id: hex(16),
  user: line(64),
  host: line(255),
  pid: count(),
  /** The driver of the run before, if it is known to have ended. */
  replaces: hex(16).nullable(),
});

const problem = z.object({
  kind: z.enum(STOP_KINDS),
  /** The replica at which it stopped; null: at none. */
  replica: replicaName.nullable(),
  sentence: line(),
  /** The next step; null: just go on. */
  advice: line(1_024).nullable(),
});

/** How it is carried out: enough to go on elsewhere, but for the commands, which may hold secrets. */
const plan = z.object({
  verdict: z.enum(VERDICT_MODES),
  max_unavailable: z.int().min(1),
  ramp_ms: count(),
  drain_ms: count(),
  restart_ms: count(),
  compare_ms: count(),
  is_probed: z.boolean(),
  is_forced: z.boolean(),
  reason: line(256).nullable(),
  restarted_by: z.enum(['command', 'elsewhere', 'person']),
  has_rollback: z.boolean(),
  after_rollback: z.enum(['stop', 'continue']),
  /** The share of live requests by which a restarted replica is judged before it serves; null: none is. */
  shadow: z
    .string()
    .regex(/^(?:\d{1,2}(?:\.\d{1,2})?|100)%$/)
    .nullable()
    .default(null), // drivers of earlier versions do not tell it
  /** Replicas that a person takes as they are. */
  accepted: z.array(replicaName).max(MAX_REPLICAS).readonly(),
});

/** What somebody asks of a rollout. The greater version holds. */
const ask = z.object({ kind: z.enum(ASKS), version: count(), by: line(128).nullable() });

/** The facts of a rollout. A report has those replicas alone that have changed. */
export const rolloutFacts = z.object({
  id: hex(8),
  trace_id: hex(32),
  root_span_id: hex(16),
  /** Greater each time that it goes on after it had stopped. */
  run: z.int().min(1),
  /** Greater with each report, also over runs. */
  seq: count(),
  driver,
  started_at: z.iso.datetime(),
  /** When it was done, stopped or aborted; null: it has not ended. */
  ended_at: z.iso.datetime().nullable(),
  state: z.enum(STATES),
  sentence: line(),
  problem: problem.nullable(),
  plan,
  ask,
  /** Trace ids of earlier rollouts that it replaces. */
  given_up: z.array(hex(32)).max(64).readonly(),
  /** How many replicas it has, whether they are in this report or not. */
  replica_count: z.int().min(1).max(MAX_REPLICAS),
  replicas: z.array(replicaFacts).max(MAX_REPLICAS).readonly(),
});

/** The facts of a rollout, as far as they are known. */
export type RolloutFacts = z.output<typeof rolloutFacts>;

/** The facts of one replica of a rollout. */
export type ReplicaFacts = RolloutFacts['replicas'][number];

import { isDeepStrictEqual } from 'node:util';
import type { Config } from '#config';
import type { Log } from '#otel/base';
import type { HealthJudge, HealthTable } from '#replicas/health-state';
import {
  isHealthy,
  type ProbeResult,
  type ProbeTarget,
  probe,
  toHealthFinding,
  toListFinding,
} from '#replicas/probes';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';
import type { FrozenWatch } from './frozen-watch.ts';
import type { HealthDecisions } from './health-decisions.ts';
import type { PeerWatch } from './peer-watch.ts';

export interface HealthCheckerCollaborators {
  readonly registry: ReplicaRegistry;
  readonly table: HealthTable;
  /** Started and stopped with the checks. */
  readonly frozen: Pick<FrozenWatch, 'start' | 'stop'>;
  /** The same. */
  readonly peers: Pick<PeerWatch, 'start' | 'stop'>;
  readonly decisions: Pick<HealthDecisions, 'note'>;
  readonly log: Log<'debug'>;
}

/** How much of an answer's body is read for what it says. */
const MAX_TEXT_BYTES = 1024;

/** The last probes of a replica. */
interface ProbeHistory {
  /** Consecutive ones. */
  failures: number;
  successes: number;
  isUnderWay: boolean;
}

/**
 * The active health checks: probes one replica after another, each once in an interval, and marks those that fail in
 * the shared table. Drained replicas are not probed.
 */
export class HealthChecker {
  readonly #collaborators: HealthCheckerCollaborators;
  #settings: Config['health'];
  #histories = new WeakMap<RegisteredReplica, ProbeHistory>();
  #next = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(settings: Config['health'], collaborators: HealthCheckerCollaborators) {
    this.#settings = settings;
    this.#collaborators = collaborators;
    collaborators.table.configure(settings);
  }

  /** Probes a replica now, even if active checks are off, and notes its reachability. Skips a drained one. */
  async askNow(replica: RegisteredReplica, timeoutMs: number): Promise<void> {
    if (replica.drain.drained) return;
    const startedMs = performance.now();
    const result = await this.probe(replica, timeoutMs);
    if (!replica.drain.drained && !isBusy(replica, result, startedMs)) note(replica, result);
  }

  /** Requests the configured path from a replica, and notes nothing. */
  probe(replica: ProbeTarget, timeoutMs: number): Promise<ProbeResult> {
    return probeHealth(replica, { path: toHealthPath(this.#settings), timeoutMs });
  }

  start(): void {
    this.stop();
    this.#collaborators.frozen.start(this.#settings);
    this.#collaborators.peers.start(this.#settings.peers);
    if (this.#settings.active) this.#schedule();
  }

  /** Uses other settings, and forgets what the former ones have shown. */
  configure(settings: Config['health']): void {
    if (isDeepStrictEqual(settings, this.#settings)) return;
    const { table, registry } = this.#collaborators;
    this.#settings = settings;
    this.#histories = new WeakMap();
    table.configure(settings);
    for (const { slot } of registry.replicas) table.forget(slot);
    this.start();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#collaborators.frozen.stop();
    this.#collaborators.peers.stop();
  }

  /** Spreads the probes over the interval, so that a thousand replicas are not probed at once. */
  #schedule(): void {
    const { length } = this.#collaborators.registry.replicas;
    this.#timer = setTimeout(() => this.#checkNext(), this.#settings.intervalMs / Math.max(1, length));
    this.#timer.unref();
  }

  #checkNext(): void {
    const { replicas } = this.#collaborators.registry;
    const replica = replicas[this.#next++ % replicas.length];
    if (replica !== undefined && !replica.drain.drained) void this.#check(replica);
    this.#schedule();
  }

  async #check(replica: RegisteredReplica): Promise<void> {
    const history = this.#histories.get(replica) ?? { failures: 0, successes: 0, isUnderWay: false };
    if (history.isUnderWay) return;
    this.#histories.set(replica, history);
    history.isUnderWay = true;
    const startedMs = performance.now();
    const { result, isOk } = await checkHealth(replica, this.#settings);
    history.isUnderWay = false;
    // The settings have changed since: this answer no longer counts.
    if (this.#histories.get(replica) !== history) return;
    // A replica that was drained since may be about to stop.
    if (replica.drain.drained) {
      this.#histories.delete(replica);
      return;
    }
    if (isBusy(replica, result, startedMs)) return;
    const isDoubtful =
      isTimeout(result) && replica.reachability.state === 'reachable' && history.failures === 0;
    if (!isDoubtful) note(replica, result);
    this.#decide(replica, history, isOk);
    const { failures, successes } = history;
    this.#collaborators.log.debug(
      {
        replica: replica.name,
        result: result.kind === 'answer' ? result.status : result.reason,
        failures,
        successes,
      },
      'replica probed',
    );
  }

  #decide({ slot, name }: RegisteredReplica, history: ProbeHistory, isOk: boolean): void {
    const { table, decisions } = this.#collaborators;
    const note = (judge: HealthJudge, verdict: 'failing' | 'ok') =>
      decisions.note({ replica: name, judge, verdict, forMs: 0 });
    history.failures = isOk ? 0 : history.failures + 1;
    history.successes = isOk ? history.successes + 1 : 0;
    if (history.failures >= this.#settings.failures && table.markFailing(slot, 'probes')) {
      note('probes', 'failing');
    }
    if (isOk && table.noteAnswered(slot)) note('connections', 'ok');
    if (history.successes >= this.#settings.successes && table.clearFailing(slot, 'probes')) {
      note('probes', 'ok');
    }
  }
}

/** A busy engine, or a busy machine, answers probes late: one that sends responses does not fail. */
function isBusy(replica: RegisteredReplica, result: ProbeResult, startedMs: number): boolean {
  return isTimeout(result) && replica.hasSentWithin(performance.now() - startedMs);
}

/** The path that `auto` stands for. */
const HEALTH_PATH = '/health';
/** What is asked for where there is no such path: every engine has it. */
const LIST_PATH = '/v1/models';

/** The path that the settings name, or the one that most engines have. */
export function toHealthPath({ path }: Pick<Config['health'], 'path'>): string {
  return path === 'auto' ? HEALTH_PATH : path;
}

/** Probes a replica as `active` does. Where the path is `auto`, a server without it is asked for its models. */
async function checkHealth(
  replica: ProbeTarget,
  settings: Pick<Config['health'], 'path' | 'timeoutMs'>,
): Promise<{ readonly result: ProbeResult; readonly isOk: boolean }> {
  const { timeoutMs } = settings;
  const result = await probeHealth(replica, { path: toHealthPath(settings), timeoutMs });
  if (settings.path !== 'auto' || !isClientError(result)) return { result, isOk: isSuccess(result) };
  const listing = await probeHealth(replica, { path: LIST_PATH, timeoutMs });
  // Without a key of its own, the gateway may be refused where clients are not.
  const isOk = listing.kind === 'answer' && toListFinding(listing, isSuccess(listing)) === 'reachable';
  return { result: listing, isOk };
}

function isTimeout(result: ProbeResult): boolean {
  return result.kind === 'failure' && (result.reason === 'no_answer' || result.reason === 'connect_timeout');
}

function isSuccess(result: ProbeResult): boolean {
  return result.kind === 'answer' && result.status >= 200 && result.status < 300;
}

function isClientError(result: ProbeResult): boolean {
  return result.kind === 'answer' && result.status >= 400 && result.status < 500;
}

function probeHealth(
  replica: ProbeTarget,
  { path, timeoutMs }: { readonly path: string; readonly timeoutMs: number },
): Promise<ProbeResult> {
  return probe(replica, {
    path,
    timeoutMs,
    accept: '*/*',
    isWanted: () => true,
    maxBytes: MAX_TEXT_BYTES,
    onLongBody: 'truncate',
  });
}

/** Notes what a probe has shown. */
function note(replica: RegisteredReplica, result: ProbeResult): void {
  const isAnswer = result.kind === 'answer';
  // Any web server may answer a health probe, so most answers do not show that it is an inference server after all.
  const mayBeEngine = replica.config.models !== 'auto' && isAnswer && isHealthy(result);
  if (isAnswer && replica.reachability.reason === 'not_an_engine' && !mayBeEngine) return;
  replica.noteFinding(isAnswer ? toHealthFinding(result) : result.reason);
}

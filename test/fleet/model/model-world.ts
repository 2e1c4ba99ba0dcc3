import { toRandom } from '#testkit/random.ts';
import { ModelClock } from './model-clock.ts';
import { ModelGateway } from './model-gateway.ts';
import type { ModelLink } from './model-link.ts';
import { ModelStore } from './model-store.ts';

/** Something that happens to the fleet. `at` selects a gateway, `on` a replica. */
export type ModelEvent =
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'begin' | 'end' | 'drain' | 'undrain'; readonly at: number; readonly on: number }
  | {
      readonly kind:
        | 'start'
        | 'kill'
        | 'killAndLoseDisk'
        | 'stop'
        | 'cut'
        | 'slow'
        | 'lag'
        | 'heal'
        | 'forget';
      readonly at: number;
    }
  | { readonly kind: 'wipe' }
  /** The store restarts empty, and every gateway has to reconnect. */
  | { readonly kind: 'restartStore'; readonly ms: number }
  | { readonly kind: 'failOver'; readonly backBy: number };

const REPLICAS = ['x', 'y'];
const STEP_MS = 50;

/** The lag each way. A call to the store stays within its deadline. */
const LAG_MS = 236;

/** A false claim of one gateway about a replica that another one, the sender, uses or could use. */
export interface Violation {
  readonly claimant: string;
  readonly replica: string;
  readonly sender: string;
  readonly atMs: number;
}

/** A fleet with its store, links and operators, in simulated time. */
export class ModelWorld {
  readonly #store = new ModelStore();
  readonly #gateways: readonly ModelGateway[];
  readonly #random: () => number;
  #nowMs = 0;
  #queue: { readonly atMs: number; readonly action: () => void }[] = [];
  readonly violations: Violation[] = [];
  /** Possible answers to drains while a gateway that they do not name could send. */
  readonly drainViolations: Violation[] = [];
  /** Possible answers with "fleet" although the store never contained the drain or a later state. */
  readonly unpublishedAnswers: Violation[] = [];
  /** How many possible answers had no unconfirmed gateway. */
  confirmedAnswers = 0;
  /** By replica name: whether the last call was a drain. */
  readonly lastCalls = new Map<string, boolean>();
  /** How often a gateway reported `safe_to_stop: true` while another one was cut off, dead or slow. */
  safeAnswersDuringFaults = 0;

  constructor(gatewayCount: number, seed: number, { doClocksAgree = false } = {}) {
    this.#random = toRandom(seed);
    const collaborators = {
      store: this.#store,
      nowMs: () => this.#nowMs,
      schedule: (afterMs: number, action: () => void) =>
        void this.#queue.push({ atMs: this.#nowMs + afterMs, action }),
      chance: this.#random,
    };
    this.#gateways = Array.from({ length: gatewayCount }, (_, index) => {
      const drift = {
        rate: 0.91 + 0.18 * this.#random(),
        wallOffsetMs: doClocksAgree ? 0 : Math.floor((this.#random() - 0.5) * 1e8),
      };
      return new ModelGateway(`gw-${index}`, new ModelClock(drift, collaborators), collaborators);
    });
  }

  /** Carries out an event, unless the documented assumptions rule it out. */
  handle(event: ModelEvent): void {
    switch (event.kind) {
      case 'wait':
        this.wait(event.ms);
        break;
      case 'wipe':
        this.#unlessForgotten(() => this.#store.lose('everything'));
        break;
      case 'restartStore':
        if (this.#unlessForgotten(() => this.#store.lose('everything'))) {
          for (const gateway of this.#gateways)
            gateway.link.backAtMs = this.#nowMs + event.ms + 1_500 * this.#random();
        }
        break;
      case 'failOver':
        this.#unlessForgotten(() => this.#store.lose(event.backBy));
        break;
      default:
        this.#handleAt(this.#pick(event.at), event);
        this.#check();
    }
  }

  /** Lets time pass, and checks all the while what every gateway claims. */
  wait(ms: number): void {
    const endMs = this.#nowMs + ms;
    while (this.#nowMs < endMs) {
      this.#nowMs += STEP_MS;
      for (;;) {
        const due = this.#queue.filter(({ atMs }) => atMs <= this.#nowMs).sort((a, b) => a.atMs - b.atMs);
        if (due.length === 0) break;
        this.#queue = this.#queue.filter((one) => !due.includes(one));
        for (const { action } of due) {
          action();
          this.#check();
        }
      }
      this.#check();
    }
  }

  /** Ends every fault: heals links, starts gateways that have a disk, and forgets those that lost it. */
  healAll(): void {
    for (const gateway of this.#gateways) {
      gateway.link.heal();
      gateway.start();
      for (const replica of REPLICAS) while (gateway.inflightOf(replica) > 0) gateway.endRequest(replica);
    }
    this.wait(30_000);
    for (const gateway of this.#gateways) this.#forget(gateway);
    this.wait(10_000);
  }

  /** What each gateway knows about drains, and what it reports for each drained replica. */
  describe(): { readonly drains: readonly string[]; readonly safe: readonly (boolean | null)[] } {
    const drains = this.#gateways.map((gateway) =>
      JSON.stringify(
        [...gateway.drains].sort().map(([name, { drained, version }]) => [name, drained, version]),
      ),
    );
    const safe = this.#gateways.flatMap((gateway) =>
      REPLICAS.filter((replica) => gateway.drains.get(replica)?.drained).map(
        (replica) => gateway.drainStatusOf(replica)?.safeToStop ?? null,
      ),
    );
    return { drains, safe };
  }

  #handleAt(
    gateway: ModelGateway,
    event: Exclude<ModelEvent, { kind: 'wait' | 'wipe' | 'restartStore' | 'failOver' }>,
  ): void {
    const replica = REPLICAS['on' in event ? event.on % REPLICAS.length : 0] ?? '';
    switch (event.kind) {
      case 'begin':
        gateway.startRequest(replica);
        break;
      case 'end':
        gateway.endRequest(replica);
        break;
      case 'drain':
      case 'undrain': {
        const drained = event.kind === 'drain';
        if (gateway.setDrained(replica, drained)) this.lastCalls.set(replica, drained);
        break;
      }
      case 'start':
        gateway.start();
        break;
      case 'kill':
        if (this.#isDispensable(gateway)) gateway.kill();
        break;
      case 'killAndLoseDisk':
        if (!this.#isDispensable(gateway)) break;
        gateway.kill();
        this.#unlessForgotten(() => gateway.loseDisk());
        break;
      case 'stop':
        if (this.#isDispensable(gateway)) gateway.stop();
        break;
      case 'cut':
        this.#unlessForgotten(() => change(gateway.link, 'isCut'));
        break;
      case 'slow':
        this.#unlessForgotten(() => change(gateway.link, 'isSlow'));
        break;
      case 'lag':
        gateway.link.lagMs = LAG_MS;
        break;
      case 'heal':
        gateway.link.heal();
        break;
      case 'forget':
        this.#forget(gateway);
        break;
    }
  }

  /** What an operator does: a gateway is forgotten only if it has stopped. */
  #forget(gone: ModelGateway): void {
    const claimant = this.#gateways.find(({ isRunning, isConnected }) => isRunning && isConnected);
    if (claimant === undefined) return;
    const ids = claimant.vanishedAs(gone.name);
    const isStopped = gone.isRunning
      ? claimant === gone || (claimant.remembers.includes(gone.id ?? '') && !ids.includes(gone.id ?? ''))
      : this.#unlessForgotten(() => gone.loseDisk());
    if (isStopped) claimant.forget(ids);
  }

  /** Undoes the fault if no connected gateway would remember a gateway that serves without the store. */
  #unlessForgotten(lose: () => () => void): boolean {
    const undo = lose();
    const isFine = this.#areAllRemembered();
    if (!isFine) undo();
    return isFine;
  }

  /** Whether all gateways are still remembered without this one. */
  #isDispensable(gateway: ModelGateway): boolean {
    const undo = change(gateway.link, 'isCut');
    const isFine = this.#areAllRemembered();
    undo();
    return isFine;
  }

  #areAllRemembered(): boolean {
    const lost = this.#gateways.filter(({ canServe, isConnected }) => canServe && !isConnected);
    const connected = this.#gateways.filter(({ isRunning, isConnected }) => isRunning && isConnected);
    const known = [
      ...this.#store.readSnapshots().map(({ id }) => id),
      ...connected.flatMap(({ id }) => id ?? []),
    ];
    const running = this.#gateways.filter(({ isRunning }) => isRunning);
    return lost.every((gateway) => {
      const others = running.filter((other) => other !== gateway).map(({ remembers }) => remembers);
      return [known, ...others].every((start) => this.#closureOf(start).has(gateway.id ?? ''));
    });
  }

  /** The ids that these gateways remember, directly or through others. */
  #closureOf(ids: readonly string[]): ReadonlySet<string> {
    const closure = new Set(ids);
    for (const id of closure) {
      const gateway = this.#gateways.find((candidate) => candidate.id === id);
      for (const other of gateway?.remembers ?? []) closure.add(other);
    }
    return closure;
  }

  #check(): void {
    for (const claimant of this.#gateways) {
      this.#checkAnswers(claimant);
      for (const replica of REPLICAS) {
        if (claimant.drainStatusOf(replica)?.safeToStop !== true) continue;
        if (this.#gateways.some(({ isConnected, isRunning }) => !isConnected || !isRunning))
          this.safeAnswersDuringFaults++;
        const sender = this.#gateways.find(
          (gateway) => gateway.canStartRequest(replica) || gateway.inflightOf(replica) > 0,
        );
        if (sender !== undefined) {
          this.violations.push({ claimant: claimant.name, replica, sender: sender.name, atMs: this.#nowMs });
        }
      }
    }
  }

  /** An answer to a drain names every gateway that may still send. */
  #checkAnswers(claimant: ModelGateway): void {
    // A gateway that has not joined may not know all others, and reports nothing as safe to stop.
    for (const call of claimant.isServing ? claimant.openCalls : []) {
      const { scope, overtaken, unconfirmed } = claimant.answerTo(call) ?? {};
      if (!call.drained || scope !== 'fleet' || overtaken !== false || unconfirmed === undefined) continue;
      if (unconfirmed.length === 0) this.confirmedAnswers++;
      const { replica, version } = call;
      const violation = { claimant: claimant.name, replica, sender: claimant.name, atMs: this.#nowMs };
      if ((this.#store.latestVersions.get(replica) ?? '') < version) this.unpublishedAnswers.push(violation);
      const sender = this.#gateways.find(
        (gateway) => !unconfirmed.includes(gateway.name) && gateway.canStartRequest(replica),
      );
      if (sender !== undefined) this.drainViolations.push({ ...violation, sender: sender.name });
    }
  }

  #pick(index: number): ModelGateway {
    return this.#gateways[index % this.#gateways.length] as ModelGateway;
  }
}

/** Returns a function that undoes it. */
function change(link: ModelLink, fault: 'isCut' | 'isSlow'): () => void {
  const before = link[fault];
  link[fault] = true;
  return () => {
    link[fault] = before;
  };
}

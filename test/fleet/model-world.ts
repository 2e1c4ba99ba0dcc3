import { ModelClock } from './model-clock.ts';
import { ModelGateway } from './model-gateway.ts';
import type { ModelLink } from './model-link.ts';
import { ModelStore } from './model-store.ts';
import { toRandom } from './random.ts';

/** Something that happens to the fleet; `at` chooses a gateway, `on` a replica. */
export type Happening =
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
  /** The store restarts empty, and everybody has to find it again. */
  | { readonly kind: 'restartStore'; readonly ms: number }
  | { readonly kind: 'failOver'; readonly backBy: number };

const REPLICAS = ['x', 'y'];
const STEP_MS = 50;

/** Each way, so that a call to the store with its ways stays within its deadline. */
const LAG_MS = 236;

/** A lie that a gateway told: what it said of a replica, and who could still send to it, or did. */
export interface Lie {
  readonly teller: string;
  readonly replica: string;
  readonly sender: string;
  readonly atMs: number;
}

/** A fleet with everything around it, in a time of its own. */
export class ModelWorld {
  readonly #store = new ModelStore();
  readonly #gateways: readonly ModelGateway[];
  readonly #random: () => number;
  #nowMs = 0;
  #queue: { readonly atMs: number; readonly what: () => void }[] = [];
  readonly lies: Lie[] = [];
  /** Answers to drains that could have been given while a gateway that they do not name could send. */
  readonly falseAnswers: Lie[] = [];
  /** The same with "fleet" while the store had never had the drain, nor a later state. */
  readonly untoldAnswers: Lie[] = [];
  /** How many could have been given that name nobody. */
  fullAnswers = 0;
  /** By replica, whether the last call that anybody made was a drain. */
  readonly lastCalls = new Map<string, boolean>();
  /** How often somebody said `safe_to_stop: true` while somebody else was cut off, dead or late. */
  answersInSpite = 0;

  constructor(gatewayCount: number, seed: number, { doClocksAgree = false } = {}) {
    this.#random = toRandom(seed);
    const surroundings = {
      store: this.#store,
      nowMs: () => this.#nowMs,
      later: (afterMs: number, what: () => void) =>
        void this.#queue.push({ atMs: this.#nowMs + afterMs, what }),
      chance: this.#random,
    };
    this.#gateways = Array.from({ length: gatewayCount }, (_, index) => {
      const drift = {
        rate: 0.91 + 0.18 * this.#random(),
        wallOffsetMs: doClocksAgree ? 0 : Math.floor((this.#random() - 0.5) * 1e8),
      };
      return new ModelGateway(`gw-${index}`, new ModelClock(drift, surroundings), surroundings);
    });
  }

  /** Lets something happen, unless the page of assumptions rules it out. */
  happen(event: Happening): void {
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
        this.#happenTo(this.#pick(event.at), event);
        this.#look();
    }
  }

  /** Lets time pass, and looks at what everybody says all the while. */
  wait(ms: number): void {
    const endMs = this.#nowMs + ms;
    while (this.#nowMs < endMs) {
      this.#nowMs += STEP_MS;
      for (;;) {
        const due = this.#queue.filter(({ atMs }) => atMs <= this.#nowMs).sort((a, b) => a.atMs - b.atMs);
        if (due.length === 0) break;
        this.#queue = this.#queue.filter((one) => !due.includes(one));
        for (const { what } of due) {
          what();
          this.#look();
        }
      }
      this.#look();
    }
  }

  /** Ends every fault: connections are whole, who died with a disk runs, who died without one is forgotten. */
  healAll(): void {
    for (const gateway of this.#gateways) {
      gateway.link.heal();
      gateway.start();
      for (const replica of REPLICAS) while (gateway.inflightOf(replica) > 0) gateway.end(replica);
    }
    this.wait(30_000);
    for (const gateway of this.#gateways) this.#forget(gateway);
    this.wait(10_000);
  }

  /** What each gateway knows of drains, and what each says of each drained replica. */
  describe(): { readonly drains: readonly string[]; readonly safe: readonly (boolean | null)[] } {
    const drains = this.#gateways.map((gateway) =>
      JSON.stringify(
        [...gateway.drains].sort().map(([name, { drained, version }]) => [name, drained, version]),
      ),
    );
    const safe = this.#gateways.flatMap((gateway) =>
      REPLICAS.filter((replica) => gateway.drains.get(replica)?.drained).map(
        (replica) => gateway.standingOf(replica)?.safeToStop ?? null,
      ),
    );
    return { drains, safe };
  }

  #happenTo(
    gateway: ModelGateway,
    event: Exclude<Happening, { kind: 'wait' | 'wipe' | 'restartStore' | 'failOver' }>,
  ): void {
    const replica = REPLICAS['on' in event ? event.on % REPLICAS.length : 0] ?? '';
    switch (event.kind) {
      case 'begin':
        gateway.begin(replica);
        break;
      case 'end':
        gateway.end(replica);
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

  /** The operator's part of it: what is forgotten has stopped. */
  #forget(gone: ModelGateway): void {
    const teller = this.#gateways.find(({ isRunning, isConnected }) => isRunning && isConnected);
    if (teller === undefined) return;
    const ids = teller.vanishedAs(gone.name);
    const isStopped = gone.isRunning
      ? teller === gone || (teller.remembers.includes(gone.id ?? '') && !ids.includes(gone.id ?? ''))
      : this.#unlessForgotten(() => gone.loseDisk());
    if (isStopped) teller.forget(ids);
  }

  /** Undoes what would leave a gateway that serves and cannot reach the store remembered by nobody who can. */
  #unlessForgotten(lose: () => () => void): boolean {
    const undo = lose();
    const isFine = this.#isEverybodyRemembered();
    if (!isFine) undo();
    return isFine;
  }

  /** Whether everybody is remembered without this one too. */
  #isDispensable(gateway: ModelGateway): boolean {
    const undo = change(gateway.link, 'isCut');
    const isFine = this.#isEverybodyRemembered();
    undo();
    return isFine;
  }

  #isEverybodyRemembered(): boolean {
    const lost = this.#gateways.filter(({ canServe, isConnected }) => canServe && !isConnected);
    const connected = this.#gateways.filter(({ isRunning, isConnected }) => isRunning && isConnected);
    const board = [
      ...this.#store.readLedgers().map(({ id }) => id),
      ...connected.flatMap(({ id }) => id ?? []),
    ];
    const running = this.#gateways.filter(({ isRunning }) => isRunning);
    return lost.every((gateway) => {
      const others = running.filter((other) => other !== gateway).map(({ remembers }) => remembers);
      return [board, ...others].every((start) => this.#closureOf(start).has(gateway.id ?? ''));
    });
  }

  /** All that these gateways remember, and those whom they remember, and so on. */
  #closureOf(ids: readonly string[]): ReadonlySet<string> {
    const closure = new Set(ids);
    for (const id of closure) {
      const gateway = this.#gateways.find((candidate) => candidate.id === id);
      for (const other of gateway?.remembers ?? []) closure.add(other);
    }
    return closure;
  }

  #look(): void {
    for (const teller of this.#gateways) {
      this.#lookAtAnswers(teller);
      for (const replica of REPLICAS) {
        if (teller.standingOf(replica)?.safeToStop !== true) continue;
        if (this.#gateways.some(({ isConnected, isRunning }) => !isConnected || !isRunning))
          this.answersInSpite++;
        const sender = this.#gateways.find(
          (gateway) => gateway.canBegin(replica) || gateway.inflightOf(replica) > 0,
        );
        if (sender !== undefined) {
          this.lies.push({ teller: teller.name, replica, sender: sender.name, atMs: this.#nowMs });
        }
      }
    }
  }

  /** An answer to a drain says who may still send; nobody else can. */
  #lookAtAnswers(teller: ModelGateway): void {
    // Who has not joined yet may not know everybody; nothing is safe to stop there.
    for (const call of teller.isServing ? teller.openCalls : []) {
      const { scope, overtaken, unconfirmed } = teller.answerTo(call) ?? {};
      if (!call.drained || scope !== 'fleet' || overtaken !== false || unconfirmed === undefined) continue;
      if (unconfirmed.length === 0) this.fullAnswers++;
      const { replica, version } = call;
      const lie = { teller: teller.name, replica, sender: teller.name, atMs: this.#nowMs };
      if ((this.#store.latestVersions.get(replica) ?? '') < version) this.untoldAnswers.push(lie);
      const sender = this.#gateways.find(
        (gateway) => !unconfirmed.includes(gateway.name) && gateway.canBegin(replica),
      );
      if (sender !== undefined) this.falseAnswers.push({ ...lie, sender: sender.name });
    }
  }

  #pick(index: number): ModelGateway {
    return this.#gateways[index % this.#gateways.length] as ModelGateway;
  }
}

/** Returns the way back. */
function change(link: ModelLink, fault: 'isCut' | 'isSlow'): () => void {
  const before = link[fault];
  link[fault] = true;
  return () => {
    link[fault] = before;
  };
}

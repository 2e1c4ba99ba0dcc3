import type { End } from '../engine/end.ts';
import type { SimulatedThread } from '../platform/thread.ts';
import { hostOf } from './addresses.ts';
import type { Action } from './plan.ts';
import type { World } from './world.ts';

/** An action that is no client's and no operator's. */
type Fault = Exclude<Action, { kind: 'client' | 'drain' | 'undrain' | 'look' | 'reload' }>;

/** Makes the faults of the plan happen, and end. */
export class Faults {
  readonly #world: World;
  readonly #startGateway: (gateway: number) => void;

  /** `startGateway` is called when a gateway that was stopped or killed is to start again. */
  constructor(world: World, startGateway: (gateway: number) => void) {
    this.#world = world;
    this.#startGateway = startGateway;
  }

  begin(fault: Fault): void {
    const world = this.#world;
    switch (fault.kind) {
      case 'replica':
        this.#breakReplica(fault);
        break;
      case 'collector':
        world.collector.set(fault.to);
        world.after(fault.forMs, 'the collector recovers', () => world.collector.set('ok'));
        break;
      case 'redis':
        this.#breakRedis(fault);
        break;
      case 'disk':
        this.#breakDisk(fault);
        break;
      case 'stop':
      case 'kill':
        world.gateways[fault.gateway]?.[fault.kind]();
        world.after(fault.forMs, 'the gateway starts', () => this.#startGateway(fault.gateway));
        break;
      case 'crash_worker':
        this.#workerOf(fault)?.next('defect', () => {
          throw new Error('a simulated defect');
        });
        break;
      case 'kill_worker':
        this.#killWorker(fault);
        break;
      case 'stall': {
        const thread = world.gateways[fault.gateway]?.threadOf(fault.worker);
        // A shorter stall within a longer one would let what follows overtake what waits.
        if (thread != null)
          thread.stalledUntilMs = Math.max(thread.stalledUntilMs, world.schedule.nowMs + fault.forMs);
        break;
      }
      case 'partition':
        this.#separate(hostOf.gateway(fault.gateway), hostOf.redis, fault.forMs);
        break;
      case 'cut':
        this.#cut(fault);
        break;
    }
  }

  /** Null with one worker, which is the main thread: main.ts, which is not simulated, ends the process in order. */
  #workerOf({
    gateway,
    worker,
  }: {
    readonly gateway: number;
    readonly worker: number;
  }): SimulatedThread | null {
    const { plan, gateways } = this.#world;
    return plan.workers === 1 ? null : (gateways[gateway]?.threadOf(worker + 1) ?? null);
  }

  #killWorker(fault: Extract<Action, { kind: 'kill_worker' }>): void {
    const thread = this.#workerOf(fault);
    if (thread === null) return;
    this.#world.schedule.afterSteps(fault.afterSteps, thread, `${thread.name} dies`, () =>
      thread.abort(new Error('a simulated end of memory')),
    );
  }

  #breakReplica({ replica, to, forMs }: Extract<Action, { kind: 'replica' }>): void {
    const { replicas, unreachable } = this.#world;
    const host = hostOf.replica(replica);
    if (to === 'crash') replicas[replica]?.crash();
    else unreachable.set(host, to === 'refuse' ? 'refused' : 'silent');
    this.#world.after(forMs, 'the replica recovers', () => {
      unreachable.delete(host);
      replicas[replica]?.start();
    });
  }

  #breakRedis({ to, forMs }: Extract<Action, { kind: 'redis' }>): void {
    const { redis, chance } = this.#world;
    switch (to) {
      case 'down':
        redis.stop();
        break;
      case 'wiped':
        redis.stop();
        redis.wipe();
        break;
      case 'hangs':
        redis.isHanging = true;
        break;
      case 'cut':
        for (const end of this.#world.connectionsBetween(hostOf.redis, hostOf.gateway(0)))
          this.#cutAt(end, chance.below(300));
        break;
    }
    this.#world.after(forMs, 'redis recovers', () => {
      redis.isHanging = false;
      redis.start();
    });
  }

  #breakDisk({ gateway, to, forMs }: Extract<Action, { kind: 'disk' }>): void {
    const node = this.#world.gateways[gateway];
    if (node === undefined) return;
    const { disk } = node.machine;
    node.losses.hadDiskFaults = true;
    disk.fault = to;
    this.#world.after(forMs, 'the disk recovers', () => {
      disk.fault = 'none';
    });
  }

  /** Nothing passes between two hosts for a while. */
  #separate(here: string, there: string, forMs: number): void {
    const world = this.#world;
    const untilMs = world.schedule.nowMs + forMs;
    for (const end of world.connectionsBetween(here, there)) {
      end.out.stalledUntilMs = untilMs;
      end.peer.out.stalledUntilMs = untilMs;
    }
    world.unreachable.set(`${here}>${there}`, 'silent');
    world.after(forMs, 'the partition ends', () => world.unreachable.delete(`${here}>${there}`));
  }

  #cut({ side, how }: Extract<Action, { kind: 'cut' }>): void {
    const { chance, network, schedule } = this.#world;
    const prefix = side === 'clients' ? `${hostOf.client}:` : '10.0.1.';
    const ends = [...network.open].filter(({ localAddress }) => localAddress.startsWith(prefix));
    if (ends.length === 0) return;
    const picked = chance.pick(ends);
    const end = chance.chance(50) ? picked : picked.peer;
    if (how === 'reset') this.#cutAt(end, chance.below(chance.chance(50) ? 30 : 2_000));
    else end.out.stalledUntilMs = schedule.nowMs + chance.between(1, 4_000);
  }

  /** The connection breaks when so many more bytes have been delivered from this side. */
  #cutAt(end: End, moreBytes: number): void {
    end.out.cut = {
      atBytes: end.out.deliveredBytes + moreBytes,
      run: () => {
        end.fail('ECONNRESET');
        end.peer.fail('ECONNRESET');
      },
    };
  }
}

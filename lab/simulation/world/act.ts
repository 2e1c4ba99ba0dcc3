import type { End } from '../engine/end.ts';
import { Client } from './actors/client.ts';
import { ADMIN_TOKEN } from './actors/gateway-node.ts';
import { callAdmin } from './actors/operator.ts';
import { hostOf } from './addresses.ts';
import type { AdminAnswer } from './checks/facts.ts';
import type { Action } from './plan.ts';
import type { World } from './world.ts';

/** Makes the actions of the plan happen. */
export class Stage {
  readonly #world: World;
  /** The last call of operators for each replica: they come one after another. */
  readonly #lastCalls = new Map<number, Promise<void>>();
  /** Gateways whose disk had faults. */
  readonly #withDiskFaults = new Set<number>();
  #openCalls = 0;
  #isHealed = false;

  constructor(world: World) {
    this.#world = world;
  }

  get isQuiet(): boolean {
    return this.#openCalls === 0;
  }

  /** Schedules all actions, counted from now. */
  schedule(): void {
    for (const action of this.#world.plan.actions) {
      this.#world.after(action.atMs, `action ${action.kind}`, () => this.#act(action));
    }
  }

  /** Starts all that there is. */
  start(): void {
    const { collector, redis, replicas, gateways } = this.#world;
    collector.set('ok');
    redis.start();
    for (const replica of replicas) replica.start();
    for (const { index } of gateways) this.startGateway(index);
  }

  /** Ends all faults. Gateways that are down start. */
  heal(): void {
    const { unreachable, redis, gateways } = this.#world;
    this.#isHealed = true;
    this.#world.isFair = true;
    unreachable.clear();
    redis.isHanging = false;
    for (const { machine } of gateways) machine.disk.fault = 'none';
    this.start();
  }

  startGateway(index: number): void {
    const gateway = this.#world.gateways[index];
    if (gateway === undefined || gateway.state === 'starting' || gateway.state === 'serving') return;
    this.#world.ledger.claims.onRestart(index, this.#withDiskFaults.has(index));
    gateway.start();
  }

  /** Calls the admin API. */
  call(gateway: number, call: string): Promise<AdminAnswer | null> {
    const { promise, resolve } = Promise.withResolvers<AdminAnswer | null>();
    this.#openCalls++;
    callAdmin(this.#world.parts, gateway, call, ADMIN_TOKEN, (answer) => {
      this.#openCalls--;
      this.#world.note(
        `operator: ${call} at gateway ${gateway}: ${answer === null ? 'no answer' : `${answer.status} ${JSON.stringify(answer.json)}`}`,
      );
      resolve(answer);
    });
    return promise;
  }

  #act(action: Action): void {
    const world = this.#world;
    world.note(`action ${JSON.stringify(action).slice(0, 300)}`);
    switch (action.kind) {
      case 'client': {
        const client = new Client(action, world.parts);
        world.clients.push(client);
        client.start();
        break;
      }
      case 'drain':
      case 'undrain':
        this.#changeDrain(action.kind, action.gateway, action.replica);
        break;
      case 'look':
        void this.call(action.gateway, 'GET /admin/replicas');
        void this.call(action.gateway, 'GET /admin/stats');
        break;
      case 'reload': {
        const gateway = world.gateways[action.gateway];
        if (gateway === undefined) break;
        gateway.firstByteMs = action.firstByteMs;
        gateway.reload();
        break;
      }
      case 'replica':
        this.#breakReplica(action);
        break;
      case 'collector':
        world.collector.set(action.to);
        world.after(action.forMs, 'the collector recovers', () => world.collector.set('ok'));
        break;
      case 'redis':
        this.#breakRedis(action);
        break;
      case 'disk':
        this.#breakDisk(action);
        break;
      case 'stop':
      case 'kill':
        world.gateways[action.gateway]?.[action.kind]();
        world.after(action.forMs, 'the gateway starts', () => {
          if (!this.#isHealed) this.startGateway(action.gateway);
        });
        break;
      case 'crash_worker':
        // With one worker, it is the main thread: main.ts, which is not simulated, ends the process in order.
        if (world.plan.workers > 1) {
          world.gateways[action.gateway]?.threadOf(action.worker + 1)?.next('defect', () => {
            throw new Error('a simulated defect');
          });
        }
        break;
      case 'stall': {
        const thread = world.gateways[action.gateway]?.threadOf(action.worker);
        if (thread != null) thread.stalledUntilMs = world.schedule.nowMs + action.forMs;
        break;
      }
      case 'partition':
        this.#separate(hostOf.gateway(action.gateway), hostOf.redis, action.forMs);
        break;
      case 'cut':
        this.#cut(action);
        break;
    }
  }

  /** A drain or an undrain, after the earlier ones of the replica have been answered. */
  #changeDrain(action: 'drain' | 'undrain', gateway: number, replica: number): void {
    const before = this.#lastCalls.get(replica) ?? Promise.resolve();
    this.#openCalls++;
    const call = before.then(async () => {
      this.#world.ledger.claims.onCall(action, replica);
      await this.call(gateway, `POST /admin/replicas/replica-${replica}/${action}`);
      this.#openCalls--;
    });
    this.#lastCalls.set(replica, call);
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
    const disk = this.#world.gateways[gateway]?.machine.disk;
    if (disk === undefined) return;
    this.#withDiskFaults.add(gateway);
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

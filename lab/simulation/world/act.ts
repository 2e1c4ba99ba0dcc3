import { Client } from './actors/client.ts';
import { ADMIN_TOKEN } from './actors/gateway-node.ts';
import { callAdmin } from './actors/operator.ts';
import type { AdminAnswer } from './checks/facts.ts';
import { Faults } from './faults.ts';
import type { Action } from './plan.ts';
import type { World } from './world.ts';

/** Makes the actions of the plan happen. */
export class Stage {
  readonly #world: World;
  /** The last call of operators for each replica: they come one after another. */
  readonly #lastCalls = new Map<number, Promise<void>>();
  readonly #faults: Faults;
  #openCalls = 0;
  #isHealed = false;

  constructor(world: World) {
    this.#world = world;
    this.#faults = new Faults(world, (gateway) => {
      if (!this.#isHealed) this.startGateway(gateway);
    });
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
    this.#world.chronicle.claims.onRestart(index, gateway.losses.hadDiskFaults);
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
      default:
        this.#faults.begin(action);
    }
  }

  /** A drain or an undrain, after the earlier ones of the replica have been answered. */
  #changeDrain(action: 'drain' | 'undrain', gateway: number, replica: number): void {
    const before = this.#lastCalls.get(replica) ?? Promise.resolve();
    this.#openCalls++;
    const call = before.then(async () => {
      this.#world.chronicle.claims.onCall(action, replica);
      await this.call(gateway, `POST /admin/replicas/replica-${replica}/${action}`);
      this.#openCalls--;
    });
    this.#lastCalls.set(replica, call);
  }
}

import { readFile } from 'node:fs/promises';
import { memberOf } from '#base/parsed';
import { type AdminClient, callDrain } from '#cli/admin-client';
import { SCENE_TEXTS, type Scene, type SimulatedReplica } from '#simulate';
import { makeSignInLink } from '../../operate/sign-in.ts';
import { sendSampleTraffic } from './sample-traffic.ts';

/** What the keys act on. */
export interface Demo {
  readonly client: AdminClient;
  readonly gatewayUrl: string;
  /** The name of the replica that is drained. */
  readonly drained: string;
  /** The replica that plays scenes. */
  readonly actor: { readonly name: string; readonly replica: Pick<SimulatedReplica, 'play'> };
  readonly print: (line: string) => void;
}

const SCENE_KEYS: ReadonlyMap<string, Scene> = new Map([
  ['s', 'slow'],
  ['f', 'failing'],
  ['z', 'frozen'],
  ['l', 'loading'],
  ['n', 'normal'],
]);

/** What the keys do, for the introduction. */
export function toKeyHelp(drained: string, actor: string): string {
  return `Press a key, and watch the page:

  t  sample traffic, on and off          d  drain ${drained}, and undrain it
  s  ${actor} is slow      f  it fails      z  it freezes      l  it loads its model      n  it is normal again
  o  another link to the page            q  stop`;
}

/** Carries out keys, one after the other. */
export class Keyboard {
  readonly #demo: Demo;
  readonly #stopped: AbortSignal;
  #traffic: AbortController | null = null;
  #inTurn: Promise<void> = Promise.resolve();

  /** Traffic ends with `stopped`, too. */
  constructor(demo: Demo, stopped: AbortSignal) {
    this.#demo = demo;
    this.#stopped = stopped;
  }

  /** Resolves when what the key does is done. An unknown key does nothing. */
  press(key: string): Promise<void> {
    this.#inTurn = this.#inTurn.then(() => this.#act(key)).catch((error: unknown) => this.#explain(error));
    return this.#inTurn;
  }

  async #act(key: string): Promise<void> {
    const scene = SCENE_KEYS.get(key);
    if (scene !== undefined) this.#play(scene);
    else if (key === 't') this.#toggleTraffic();
    else if (key === 'd') await this.#toggleDrain();
    else if (key === 'o') this.#demo.print((await makeSignInLink(this.#demo.client)).url);
  }

  #play(scene: Scene): void {
    const { actor, print } = this.#demo;
    actor.replica.play(scene);
    print(`${actor.name} is ${scene} now: it ${SCENE_TEXTS[scene]}.`);
    // Without requests nobody would notice.
    if (this.#traffic === null) this.#toggleTraffic();
  }

  #toggleTraffic(): void {
    const { gatewayUrl, print } = this.#demo;
    if (this.#traffic !== null) {
      this.#traffic.abort();
      this.#traffic = null;
      return;
    }
    const traffic = new AbortController();
    this.#traffic = traffic;
    print('Sample traffic: twelve streams per second, of two tenants. Its records are not printed here.');
    const ended = sendSampleTraffic(gatewayUrl, AbortSignal.any([traffic.signal, this.#stopped]));
    void ended.then(({ sent, answered, failed }) =>
      print(`Sample traffic has ended: ${sent} requests, ${answered} answered, ${failed} failed.`),
    );
  }

  async #toggleDrain(): Promise<void> {
    const { client, drained: name, print } = this.#demo;
    const answered = await client.call('GET', `/admin/replicas/${name}`);
    if (memberOf(memberOf(answered, 'replica'), 'drained') === true) {
      await callDrain(client, { name, action: 'undrain' }, null);
      print(`${name} is undrained: it gets its turns again.`);
      return;
    }
    const answer = memberOf(await callDrain(client, { name, action: 'drain' }, null), 'replica');
    print(
      `${name} is drained: new requests go to the other one. In flight: ${memberOf(answer, 'inflight')}.`,
    );
    void this.#tellWhenIdle().catch((error: unknown) => this.#explain(error));
  }

  /** The wait may take as long as the longest stream: further keys do not wait for it. */
  async #tellWhenIdle(): Promise<void> {
    const { client, drained: name, print } = this.#demo;
    const idle = await client.call('POST', `/admin/replicas/${name}/drain?wait=15s`, this.#stopped);
    if (memberOf(memberOf(idle, 'replica'), 'safe_to_stop') === true) {
      print(`${name} is safe to stop: nothing is in flight on it. Press d to undrain it.`);
    }
  }

  #explain(error: unknown): void {
    if (!this.#stopped.aborted) this.#demo.print(error instanceof Error ? error.message : 'the key failed');
  }
}

/** A process without a controlling terminal is never stopped by one. */
const NO_TERMINAL = '-1';

/**
 * Whether the process may read keys: a job in the background is stopped by the system if it tries (SIGTTOU, SIGTTIN).
 * Only Linux tells; elsewhere it counts as in the foreground.
 */
export async function isInForeground(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  if (stat === null) return true;
  // After the name, which may hold anything: state, ppid, pgrp, session, tty_nr, tpgid (proc_pid_stat(5)).
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return foreground === NO_TERMINAL || group === foreground;
}

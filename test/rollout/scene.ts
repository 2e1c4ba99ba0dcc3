import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { FakeCollector } from '#testkit/fake-collector.ts';
import {
  answerJson,
  COMPLETION,
  type FakeReplica,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { keepChatting } from '#testkit/load/paced-chats.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { invoke, type Started, start } from '../cli/invoke.ts';

/** What a rollout may do here. */
export const TOKEN = { SVC_ADMIN_TOKEN: ADMIN_TOKEN };
/** As fast as it gets. */
export const QUICK = ['--ramp', '0s', '--verdict', 'off'];

/** Answers with this status. */
export const answerError = (status: number) => answerJson({ error: { message: 'no' } }, { status });

/** What an engine answers that is asked directly: its models, and small requests by `completion`. */
export const asEngine =
  (completion: Script): Script =>
  async (exchange) => {
    const list = answerJson({ object: 'list', data: [{ id: 'm', object: 'model', owned_by: 'x' }] });
    await (exchange.request.method === 'POST' ? completion : list)(exchange);
  };

/** Replicas behind a gateway, and rollouts of them. */
export interface Scene {
  readonly gateway: StartedGateway;
  readonly folder: string;
  readonly statePath: string;
  readonly replicas: ReadonlyMap<string, FakeReplica>;
  /** Runs `gateway rollout`. */
  roll(...args: readonly string[]): ReturnType<typeof invoke>;
  begin(args: readonly string[], options?: Parameters<typeof start>[2]): Started;
}

/** Starts a replica for each name, all with the model `m`, and the gateway. */
export async function setUp(names: readonly string[], collector?: FakeCollector): Promise<Scene> {
  const folder = await mkdtempDisposable(join(tmpdir(), 'spangate-rollout-'));
  const replicas = new Map<string, FakeReplica>();
  for (const name of names) {
    const replica = await startFakeReplica({ name });
    replica.answerProbes(asEngine(answerJson(COMPLETION)));
    replicas.set(name, replica);
  }
  const gateway = await startGateway({
    replicas: [...replicas.values()],
    ...(collector === undefined ? {} : { collector }),
  });
  onTestFinished(async () => {
    await gateway[Symbol.asyncDispose]();
    await Promise.all([...replicas.values()].map((replica) => replica[Symbol.asyncDispose]()));
    await folder[Symbol.asyncDispose]();
  });
  const statePath = join(folder.path, 'rollout.json');
  const toArgs = (args: readonly string[]) => [
    ...['rollout', ...args, '--state', statePath],
    ...(args.includes('--resume') ? [] : ['--admin', gateway.adminUrl]),
  ];
  return {
    gateway,
    folder: folder.path,
    statePath,
    replicas,
    roll: (...args) => invoke(toArgs(args), TOKEN),
    begin: (args, options) => start(toArgs(args), TOKEN, options),
  };
}

/** The names of the replicas that are drained. */
export const drainedNames = async (gateway: StartedGateway) =>
  (await gateway.replicas()).filter(({ drained }) => drained).map(({ name }) => name);

/** Sends requests until the rollout has ended. */
export async function underLoad(gateway: StartedGateway, rollout: Started): ReturnType<typeof invoke> {
  await using _chats = keepChatting(gateway, { clientCount: 3, pauseMs: 80 });
  return await rollout.ended;
}

import { expect, test } from 'vitest';
import { type AdminClient, RefusedError, UnreachableError } from '#cli/admin-client';
import { RolloutBoard } from '#rollout-board';
import { rolloutFacts as schema } from '#rollout-board/facts';
import { replicaFacts, rolloutFacts } from '#testkit/rollout-facts.ts';
import { RolloutTeller } from '../../../src/rollout/tell/rollout-teller.ts';
import { Steering } from '../../../src/rollout/tell/steering.ts';

/** Nothing interrupts the first report. */
const UNTIL_TOLD = new AbortController().signal;

/** A gateway that keeps what it is told on a board, which a test may take away. */
function createGateway() {
  const gateway = { board: new RolloutBoard(), isAway: false, isOlder: false };
  const client: AdminClient = {
    baseUrl: 'http://gateway',
    async call(_method, _path, _signal, body) {
      if (gateway.isAway) throw new UnreachableError('away', null);
      if (gateway.isOlder) throw new RefusedError('not_found', 'There is no such path.');
      const outcome = gateway.board.report(schema.parse(JSON.parse(JSON.stringify(body))), 'ops');
      if (outcome.kind !== 'taken') throw new RefusedError(`rollout_${outcome.kind}`, 'no');
      return { ask: outcome.rollout.facts.ask, complete: outcome.isComplete };
    },
  };
  return { gateway, client, known: () => gateway.board.find('0000000a')?.facts };
}

function createTeller(clients: readonly AdminClient[], count = 2) {
  const {
    seq: _,
    ended_at: __,
    state: ___,
    sentence,
    problem,
    ask,
    replica_count,
    replicas,
    ...head
  } = rolloutFacts();
  const steering = new Steering();
  const said: string[] = [];
  const names = Array.from({ length: count }, (_each, at) => `r${at}`);
  const teller = new RolloutTeller(
    head,
    names.map((name) => ({ name, stage: 'waiting', text: 'x'.repeat(400) })),
    { clients, steering, say: (line) => said.push(line), onAsk: () => undefined },
  );
  return { teller, steering, said };
}

test('a gateway that has forgotten the rollout is told all of it', async () => {
  const { gateway, client, known } = createGateway();
  const { teller } = createTeller([client]);
  await teller.begin(UNTIL_TOLD);
  gateway.board = new RolloutBoard();
  teller.show('r1', 'draining', 'is drained');
  await expect.poll(() => known()?.replicas.length).toBe(2);
  expect(known()?.replicas.find(({ name }) => name === 'r1')).toMatchObject({ text: 'is drained' });
  await teller.end();
});

test('a rollout of many replicas comes in several reports', async () => {
  const { client, known } = createGateway();
  const { teller } = createTeller([client], 400);
  await teller.begin(UNTIL_TOLD);
  expect(known()?.replicas).toHaveLength(400);
  await teller.end();
});

test('its end is told as soon as a gateway answers again', async () => {
  const { gateway, client, known } = createGateway();
  const { teller } = createTeller([client]);
  await teller.begin(UNTIL_TOLD);
  gateway.isAway = true;
  teller.set({ state: 'done', sentence: '2 of 2', problem: null });
  const ended = teller.end();
  setTimeout(() => {
    gateway.isAway = false;
  }, 300);
  await ended;
  expect(known()).toMatchObject({ state: 'done', sentence: '2 of 2', ended_at: expect.any(String) });
});

test('an older gateway is told of once, and holds up nothing', async () => {
  const { gateway, client } = createGateway();
  gateway.isOlder = true;
  const { teller, said } = createTeller([client]);
  await teller.begin(UNTIL_TOLD);
  await teller.end();
  expect(said).toEqual(['http://gateway is older: it does not show this rollout to others']);
});

test('a gateway that hangs is waited for until the rollout is interrupted', async () => {
  const interrupted = new AbortController();
  const { client, known } = createGateway();
  const hanging: AdminClient = {
    baseUrl: 'http://gateway',
    call: (method, path, signal, body) => {
      if (interrupted.signal.aborted) return client.call(method, path, signal, body);
      return new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new UnreachableError('ended', signal.reason)));
        interrupted.abort();
      });
    },
  };
  const { teller } = createTeller([hanging]);
  await teller.begin(interrupted.signal);
  expect(known()).toBeUndefined();
  await teller.end();
  expect(known()).toMatchObject({ sentence: 'begins' });
});

test('a refusal of one gateway ends it at the others', async () => {
  const free = createGateway();
  const busy = createGateway();
  busy.gateway.board.report(rolloutFacts({ id: '0000000b', replicas: [replicaFacts('r0')] }), null);
  const { teller } = createTeller([free.client, busy.client]);
  await expect(teller.begin(UNTIL_TOLD)).rejects.toThrow('nothing was begun: no');
  expect(free.known()).toMatchObject({ state: 'aborted' });
  expect(busy.known()).toBeUndefined();
});

test('a driver whose rollout was taken over ends, and tells nothing more', async () => {
  const { gateway, client, known } = createGateway();
  const { teller, steering } = createTeller([client]);
  await teller.begin(UNTIL_TOLD);
  gateway.board.learn({
    facts: rolloutFacts({
      run: 2,
      seq: 2_000_000_001,
      driver: { ...rolloutFacts().driver, id: '3'.repeat(16) },
    }),
    tokenName: null,
    heardMs: performance.now(),
  });
  await expect.poll(() => steering.signal.aborted).toBe(true);
  expect(steering.ending).toEqual({ kind: 'taken_over', message: 'no' });
  teller.set({ state: 'done', sentence: 'no', problem: null });
  await teller.end();
  expect(known()).toMatchObject({ state: 'running', run: 2 });
});

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { createGate } from '#testkit/gates.ts';
import { ADMIN_TOKEN } from '#testkit/start-gateway.ts';
import { invoke } from '../cli/invoke.ts';
import { answerError, asEngine, drainedNames, QUICK, setUp, TOKEN, underLoad } from './scene.ts';

test('restarts one replica after the other, each while it is drained, and leaves no state behind', async () => {
  const { gateway, roll, folder, statePath } = await setUp(['a', 'b']);
  const log = join(folder, 'log');
  const exec = `curl -s -H 'Authorization: Bearer ${ADMIN_TOKEN}' ${gateway.adminUrl}/admin/replicas/{name} | grep -o '"drained":[a-z]*' >>${log}; echo {name} >>${log}`;
  const { exitCode, stdout } = await roll('--model', 'm', ...QUICK, '--probe', '--exec', exec);
  expect(stdout).toContain('a: is being drained\n');
  expect(stdout).toMatch(/2 of 2 replicas done\n$/);
  expect(exitCode).toBe(0);
  expect(await readFile(log, 'utf8')).toBe('"drained":true\na\n"drained":true\nb\n');
  expect(await drainedNames(gateway)).toEqual([]);
  await expect(readFile(statePath)).rejects.toThrow('ENOENT');
});

test('a command has the replica as variables and as positional arguments', async () => {
  const { roll, folder, replicas } = await setUp(['a', 'b']);
  const log = join(folder, 'log');
  const exec = `echo "$1 $2 $3 $4 $GATEWAY_REPLICA_NAME$GATEWAY_REPLICA_HOST" {url} >>${log}`;
  expect(await roll('a', ...QUICK, '--exec', exec)).toMatchObject({ exitCode: 0 });
  const { origin, hostname, port } = new URL(replicas.get('a')?.url ?? '');
  expect(await readFile(log, 'utf8')).toBe(`a ${hostname} ${port} ${origin} a${hostname} ${origin}\n`);
});

test('what a drain warns of is said', async () => {
  const { gateway, begin, replicas } = await setUp(['a', 'b']);
  const limited = [...replicas.values()].map(({ name, url }) => ({
    name,
    url,
    models: ['m'],
    max_inflight: 1,
  }));
  gateway.writeConfig({ replicas: limited });
  expect((await gateway.reload()).status).toBe(200);
  const gate = createGate();
  for (const replica of replicas.values()) replica.answer(gate.script);
  const chats = [gateway.chat(), gateway.chat()];
  for (const replica of replicas.values()) await replica.untilRequests(1);
  const rollout = begin(['a', ...QUICK, '--exec', 'true']);
  await rollout.untilWritten(
    'a: On the replicas left for m there is room (max_inflight) for 0 of the 1 in flight: requests may have to wait.\n',
  );
  gate.open();
  expect(await rollout.ended).toMatchObject({ exitCode: 0 });
  await Promise.all(chats);
});

describe('nothing is drained', () => {
  test('if a command could take what a replica is called for an option', async () => {
    const { gateway, roll, statePath } = await setUp(['-a', 'b']);
    const { exitCode, stderr } = await roll('--all', ...QUICK, '--exec', 'true');
    expect(stderr).toContain('-a was left as it is: its name cannot be part of a command: "-a"');
    expect(exitCode).toBe(1);
    expect(await drainedNames(gateway)).toEqual([]);
    await expect(readFile(statePath)).rejects.toThrow('ENOENT');
  });

  test('if a model would be left without a server', async () => {
    const { gateway, roll, statePath } = await setUp(['a']);
    const { exitCode, stderr } = await roll('a', ...QUICK, '--exec', 'true');
    expect(exitCode).toBe(1);
    expect(stderr).toContain('m would be left without a server');
    expect(await drainedNames(gateway)).toEqual([]);
    await expect(readFile(statePath)).rejects.toThrow('ENOENT');
  });

  test('if nobody says how replicas are restarted, and for a wrong command line', async () => {
    const { gateway, roll } = await setUp(['a', 'b']);
    for (const [args, problem] of [
      [['a'], 'nobody can be asked here'],
      [['a', '--exec', 'true', '--watch'], 'exclude each other'],
      [['a', '--exec', 'ssh {hots}'], 'the command has {hots}'],
      [['a', '--exec', 'sh -c "restart {name}"'], 'the command has {name} in double quotes: write'],
      [['a', '--exec', 'true', '--verdict', 'maybe'], "option '--verdict' is one of strict, warn, off"],
      [['a', '--exec', 'true', '--max-unavailable', '0'], 'needs a whole number'],
      [['--exec', 'true'], 'name the replicas, or give --model or --all'],
    ] as const) {
      const { exitCode, stderr } = await roll(...args);
      expect(stderr).toContain(problem);
      expect(exitCode).toBe(2);
    }
    expect(await drainedNames(gateway)).toEqual([]);
  });
});

describe('a rollout that stopped', () => {
  test('because the command failed leaves the replica drained, and goes on with --resume', async () => {
    const { gateway, roll, folder } = await setUp(['a', 'b']);
    const repaired = join(folder, 'repaired');
    const exec = `echo begins; test -e ${repaired} || { echo no GPU >&2; exit 3; }`;
    const first = await roll('a', 'b', ...QUICK, '--exec', exec);
    expect(first.exitCode).toBe(1);
    expect(first.stdout).toContain('a | no GPU\n');
    expect(first.stdout).toContain('a: is drained; its command ended with 3\n');
    expect(first.stdout).toContain('0 of 2 replicas done. To go on: gateway rollout --resume');
    expect(await drainedNames(gateway)).toEqual(['a']);

    const other = await roll('b', ...QUICK, '--exec', 'true');
    expect(other).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('a rollout is not finished (a, b;'),
    });

    await writeFile(repaired, '');
    const second = await roll('--resume');
    expect(second.stdout).toMatch(/2 of 2 replicas done\n$/);
    expect(second.exitCode).toBe(0);
    expect(await drainedNames(gateway)).toEqual([]);
  });

  test('by Ctrl-C during a restart ends with 130, and --resume goes on with that replica', async () => {
    const { gateway, begin, roll, folder, statePath } = await setUp(['a', 'b']);
    const isOpen = join(folder, 'open');
    const rollout = begin([
      'a',
      'b',
      ...QUICK,
      '--exec',
      `echo started; until test -e ${isOpen}; do sleep 0.05; done`,
    ]);
    await rollout.untilWritten('a | started');
    rollout.interrupt();
    const { exitCode, stdout } = await rollout.ended;
    expect(stdout).toContain('a: is drained; its command was interrupted');
    expect(stdout).toContain(`To go on: gateway rollout --resume --state ${statePath}\n`);
    expect(exitCode).toBe(130);
    expect(await drainedNames(gateway)).toEqual(['a']);
    await writeFile(isOpen, '');
    expect((await roll('--resume')).exitCode).toBe(0);
    expect(await drainedNames(gateway)).toEqual([]);
  });

  test('does not go on with a damaged file, which is named', async () => {
    const { roll, statePath } = await setUp(['a', 'b']);
    for (const text of ['', '{"version":1}', 'null', '[1,2']) {
      await writeFile(statePath, text);
      const { exitCode, stderr } = await roll('--resume');
      expect(stderr).toContain(`${statePath} is damaged`);
      expect(exitCode).toBe(1);
    }
    expect((await roll('a', ...QUICK, '--exec', 'true', '--new')).exitCode).toBe(0);
  });

  test('is not there, or has its own settings', async () => {
    const { roll, statePath } = await setUp(['a', 'b']);
    expect(await roll('--resume')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`there is no rollout to resume: ${statePath}`),
    });
    expect(await roll('--resume', '--reason', 'x')).toMatchObject({ exitCode: 2 });
  });
});

test('with --watch the engine is restarted by somebody else: it goes away and comes back', async () => {
  const { begin, replicas } = await setUp(['a', 'b']);
  const rollout = begin(['a', ...QUICK, '--watch']);
  await rollout.untilWritten('a: is safe to stop; waits for the engine to go away');
  replicas.get('a')?.answerProbes(answerError(503));
  await rollout.untilWritten('a: waits until the engine answers');
  replicas.get('a')?.list({ models: ['m'] });
  expect(await rollout.ended).toMatchObject({ exitCode: 0 });
});

test('without --exec a person at the terminal is asked, and sees what goes on', async () => {
  const { begin, gateway } = await setUp(['a', 'b']);
  const typed = Promise.withResolvers<void>();
  const stdin = {
    setRawMode: () => undefined,
    async *[Symbol.asyncIterator]() {
      await typed.promise;
      yield Buffer.from('\n');
    },
  };
  const terminal = { columns: 100, rows: 30 };
  const rollout = begin(['a', ...QUICK], { stdin, terminal });
  await rollout.untilWritten('a is safe to stop. Restart it, then press Enter.');
  expect(await drainedNames(gateway)).toEqual(['a']);
  typed.resolve();
  const { exitCode, stdout } = await rollout.ended;
  expect(exitCode).toBe(0);
  expect(stdout).toContain('✓');
  expect(stdout).toMatch(/a +0:0\d {2}serves; it was not compared/);
});

test('an engine that does not complete a small request is not undrained', async () => {
  const { gateway, roll, replicas } = await setUp(['a', 'b']);
  replicas.get('a')?.answerProbes(asEngine(answerError(500)));
  const { exitCode, stdout } = await roll(
    'a',
    ...QUICK,
    '--probe',
    '--exec',
    'true',
    '--restart-timeout',
    '3s',
  );
  expect(stdout).toContain('a: is drained; it is not ready: /v1/chat/completions: status 500');
  expect(exitCode).toBe(1);
  expect(await drainedNames(gateway)).toEqual(['a']);
});

test('each line of --json is one object', async () => {
  const { roll } = await setUp(['a', 'b']);
  const { stdout } = await roll('a', ...QUICK, '--exec', 'echo hello', '--json');
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(events).toContainEqual(expect.objectContaining({ event: 'output', replica: 'a', line: 'hello' }));
  expect(events).toContainEqual(expect.objectContaining({ event: 'replica', replica: 'a', phase: 'done' }));
  expect(events.at(-1)).toMatchObject({ event: 'rollout', text: '1 of 1 replicas done' });
});

test('the command that goes on is one that a shell can run', async () => {
  const { gateway, folder } = await setUp(['a', 'b']);
  const args = ['--state', join(folder, "it's here"), '--admin', gateway.adminUrl];
  const { stdout } = await invoke(['rollout', 'a', ...QUICK, '--exec', 'false', ...args], TOKEN);
  expect(stdout).toContain(`--resume --state '${folder}/it'\\''s here'\n`);
});

test('the command that goes on names no state where one is usual', async () => {
  const { gateway, folder } = await setUp(['a', 'b']);
  const args = ['rollout', 'a', ...QUICK, '--exec', 'false', '--admin', gateway.adminUrl];
  const { stdout } = await invoke(args, { ...TOKEN, XDG_STATE_HOME: folder });
  expect(stdout).toMatch(/To go on: gateway rollout --resume\n$/);
});

test('the figures of a replica that serves again are in the lines of --json', async () => {
  const { begin } = await setUp(['a', 'b']);
  const rollout = begin(['a', '--ramp', '10m', '--exec', 'true', '--json']);
  await rollout.untilWritten('"figures"');
  rollout.interrupt();
  const { stdout } = await rollout.ended;
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const figures = { share: expect.any(Number), inflight: 0, requests: 0, peer_requests: 0 };
  expect(events).toContainEqual(expect.objectContaining({ replica: 'a', phase: 'ramp', figures }));
});

test('a rollout is one trace, with a span for each step', async () => {
  await using collector = await startFakeCollector();
  const { roll } = await setUp(['a', 'b'], collector);
  await roll('a', ...QUICK, '--exec', 'true');
  const steps = [
    'rollout_drain',
    'restart',
    'answer',
    'rollout_undrain',
    'ramp',
    'compare',
    'replica',
    'rollout',
  ];
  const isStep = ({ name }: { readonly name: string }) => steps.includes(name);
  await collector.waitFor(({ spans }) => spans.filter(isStep).length === steps.length);
  const spans = collector.spans.filter(isStep);
  expect(spans.map(({ name }) => name).toSorted()).toEqual(steps.toSorted());
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  const root = spans.find(({ name }) => name === 'rollout');
  const ofReplica = spans.find(({ name }) => name === 'replica');
  expect(root?.parentSpanId).toBeUndefined();
  expect(root?.attributes).toMatchObject({
    'gateway.outcome': 'ok',
    'gateway.sentence': '1 of 1 replicas done',
  });
  expect(ofReplica?.parentSpanId).toBe(root?.spanId);
  const below = spans.filter((span) => span !== root && span !== ofReplica);
  for (const { parentSpanId, attributes } of below) {
    expect(parentSpanId).toBe(ofReplica?.spanId);
    expect(attributes).toMatchObject({ 'gateway.replica': 'a' });
  }
});

describe('the verdict', () => {
  test('holds a replica that fails, drained, and says why', async () => {
    const { gateway, begin, replicas } = await setUp(['a', 'b', 'c']);
    replicas.get('a')?.answer(answerError(500));
    const rollout = begin(['a', 'b', '--ramp', '0s', '--exec', 'true']);
    const { exitCode, stdout } = await underLoad(gateway, rollout);
    expect(stdout).toMatch(
      /a: is worse than its peers: 100 % of attempts fail \(peers 0 %\) .*It is drained again/,
    );
    expect(exitCode).toBe(3);
    const [held] = await gateway.replicas();
    expect(held).toMatchObject({
      name: 'a',
      drained: true,
      reason: expect.stringMatching(/^rollout-[0-9a-f]{8}: is worse/),
    });
  });

  test('warns and goes on with --verdict warn', async () => {
    const { gateway, begin, replicas } = await setUp(['a', 'b', 'c']);
    replicas.get('a')?.answer(answerError(500));
    const rollout = begin(['a', '--ramp', '0s', '--verdict', 'warn', '--exec', 'true']);
    const { exitCode, stdout } = await underLoad(gateway, rollout);
    expect(stdout).toContain('a: is worse than its peers: 100 % of attempts fail');
    expect(exitCode).toBe(0);
    expect(await drainedNames(gateway)).toEqual([]);
  });

  test('ends with 4 if there are no requests to judge by; the replica goes on serving', async () => {
    const { gateway, roll } = await setUp(['a', 'b']);
    const { exitCode, stdout } = await roll(
      'a',
      '--ramp',
      '0s',
      '--compare-timeout',
      '10ms',
      '--exec',
      'true',
    );
    expect(stdout).toContain(
      'a: cannot be judged yet: too few requests; about 600 more are needed. It goes on serving',
    );
    expect(exitCode).toBe(4);
    expect(await drainedNames(gateway)).toEqual([]);
  });
});

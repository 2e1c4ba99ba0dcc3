import type { ChildProcess } from 'node:child_process';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { onlyValueOf, parseDockerfile, toEnvironment } from './dockerfile.ts';
import { type ContainerOptions, canReplay, type ReplayedImage, replayDockerfile } from './replayed-image.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
const CONFIG = '/etc/spangate/gateway.yaml';
const TOKEN = 'a-token-of-sixteen';

test('hadolint finds nothing in the Dockerfile', { timeout: 300_000 }, async (context) => {
  const hadolint = await run(join(ROOT, 'scripts/hadolint.sh')).then(
    ({ stdout }) => stdout.trim(),
    (error: unknown) => {
      if (process.env.CI === 'true') throw error;
      return context.skip('needs hadolint (scripts/hadolint.sh)');
    },
  );
  const { stdout } = await run(hadolint, ['--no-color', join(ROOT, 'Dockerfile')]);
  expect(stdout).toBe('');
});

test('the Dockerfile takes the Node that the project is tested with', async () => {
  const stages = parseDockerfile(await readFile(join(ROOT, 'Dockerfile'), 'utf8'));
  const { devDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  for (const stage of stages) {
    expect(onlyValueOf(stage, 'FROM').split(' ')[0]).toBe(`node:${devDependencies.node}-slim`);
  }
});

const isPossible = await canReplay();

describe.skipIf(!isPossible)('the image, replayed without Docker', () => {
  let image: ReplayedImage;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spangate-image-test-'));
    image = await replayDockerfile();
  }, 300_000);
  afterAll(async () => {
    await image?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  /** What the guide shows first, on free ports. Resolves with the file's path and the port of the clients. */
  async function writeSample(adminHost = '127.0.0.1') {
    const guide = await readFile(join(ROOT, 'docs/guide.md'), 'utf8');
    const [, sample = ''] = /```yaml\n(gateway:\n.*?)```/s.exec(guide) ?? [];
    const [port, adminPort] = [await findFreePort(), await findFreePort()];
    const path = join(folder, `gateway-${port}.yaml`);
    const changed = sample
      .replace('0.0.0.0:8080', `0.0.0.0:${port}`)
      .replace('127.0.0.1:9090', `${adminHost}:${adminPort}`);
    await writeFile(path, changed);
    await chmod(path, 0o644);
    return { files: { [CONFIG]: path }, port, adminPort };
  }

  function container(command: readonly string[], options: ContainerOptions): ChildProcess {
    const child = image.start(command, options);
    onTestFinished(async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
    });
    return child;
  }

  async function runInside(command: readonly string[], options: ContainerOptions) {
    const { stdout, stderr, ...child } = withStreams(container(command, options));
    const [out, err, [code]] = await Promise.all([text(stdout), text(stderr), child.exited]);
    return { code, out, err };
  }

  /** Starts the image as `docker run` does. Resolves once it serves, with the messages of its log until then. */
  async function serve(options: ContainerOptions) {
    const { child, stdout, stderr, exited } = withStreams(
      container(JSON.parse(onlyValueOf(image.stage, 'ENTRYPOINT')), options),
    );
    const errors = text(stderr);
    const messages: string[] = [];
    for await (const line of createInterface({ input: stdout })) {
      messages.push(JSON.parse(line).msg);
      if (messages.at(-1) === 'serving') return { child, exited, messages };
    }
    throw new Error(await errors);
  }

  // The first test: later ones leave an empty file behind, as a bind mount does.
  test('says in one line that its configuration is missing', async () => {
    expect(await runInside(JSON.parse(onlyValueOf(image.stage, 'ENTRYPOINT')), {})).toEqual({
      code: 2,
      out: '',
      err: `gateway: cannot read the configuration file ${CONFIG}: there is no such file\n`,
    });
  });

  test('serves the sample of the guide as another user under a read-only root, with its state in the volume', async () => {
    const { files, port } = await writeSample();
    const { child, exited } = await serve({ files });
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
    expect(status).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m);
    expect(await (await fetch(`http://127.0.0.1:${port}/healthz`)).text()).toBe('ok');
    const state = join(image.root, toEnvironment(image.stage).STATE_DIRECTORY ?? '', 'state');
    expect(await readdir(state)).toContain('salt');
    expect(await stat(state)).toMatchObject({ uid: 1000, gid: 1000 });
    expect(onlyValueOf(image.stage, 'VOLUME')).toBe(toEnvironment(image.stage).STATE_DIRECTORY);
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  });

  test('has the health check that tells a gateway that serves from one that does not', async () => {
    const { files } = await writeSample();
    const [, check = ''] = /CMD (.*)$/.exec(onlyValueOf(image.stage, 'HEALTHCHECK')) ?? [];
    const { child, exited } = await serve({ files });
    expect(await runInside(JSON.parse(check), { files })).toEqual({ code: 0, out: 'ok\n', err: '' });
    child.kill('SIGTERM');
    await exited;
    expect(await runInside(JSON.parse(check), { files })).toMatchObject({
      code: 1,
      err: expect.stringContaining('cannot be reached: connection refused'),
    });
  });

  test('has the command gateway, which finds the configuration and the admin API by itself', async () => {
    const { files } = await writeSample();
    const env = { SVC_ADMIN_TOKEN: TOKEN };
    await serve({ files, env });
    expect((await runInside(['gateway', 'replicas'], { files, env })).out).toMatch(/^vllm-a .*\nvllm-b /m);
  });

  test('says when only the container reaches the admin API, and opens it where the file says so', async () => {
    const env = { SVC_ADMIN_TOKEN: TOKEN };
    const hidden = await serve({ files: (await writeSample()).files, env });
    const isAboutAdmin = (message: string) => message.startsWith('the admin API is reached only from inside');
    expect(hidden.messages.filter(isAboutAdmin)).toHaveLength(1);
    hidden.child.kill('SIGTERM');
    await hidden.exited;
    const { files, adminPort } = await writeSample('0.0.0.0');
    const open = await serve({ files, env });
    expect(open.messages.filter(isAboutAdmin)).toEqual([]);
    const headers = { Authorization: `Bearer ${TOKEN}` };
    expect((await fetch(`http://127.0.0.1:${adminPort}/admin/stats`, { headers })).status).toBe(200);
  });
});

function withStreams(child: ChildProcess) {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('the streams are pipes');
  return { child, stdout, stderr, exited: once(child, 'exit') };
}

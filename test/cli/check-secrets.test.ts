import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { invoke } from './invoke.ts';

let folder: string;
let config: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spangate-check-secrets-'));
  config = join(folder, 'gateway.yaml');
  await writeFile(config, 'replicas: [{ name: a, url: "http://127.0.0.1:9" }]\nhealth: {}\n');
});
afterAll(() => rm(folder, { recursive: true }));

/** Runs `check` with a file of these contents for a variable; null: there is no such file. */
async function check(variable: string, contents: string | null) {
  const path = join(folder, `${variable}-${contents?.length}`);
  if (contents !== null) await writeFile(path, contents);
  return await invoke(['check', '-config', config], { [`${variable}_FILE`]: path });
}

describe('gateway check reads the files of secrets', () => {
  it.each([
    'SVC_ADMIN_TOKEN',
    'SVC_OPERATOR_TOKEN',
    'SVC_READ_TOKEN',
    'SVC_DRAIN_TOKEN',
    'SVC_HASH_SALT',
    'OTEL_EXPORTER_OTLP_HEADERS',
  ])('%s_FILE is refused if it is missing, empty or too large', async (variable) => {
    for (const [contents, problem] of [
      [null, 'cannot be read: there is no such file'],
      ['\n', 'is empty'],
      ['x'.repeat(4097), 'is larger than 4096 bytes'],
    ] as const) {
      expect(await check(variable, contents)).toEqual({
        exitCode: 2,
        stdout: '',
        stderr: `gateway: the file that ${variable}_FILE names ${problem}\n`,
      });
    }
  });

  it('accepts what the gateway would use, with its warnings, and shows none of it', async () => {
    const short = 'guessable-token';
    const { exitCode, stdout, stderr } = await check('SVC_ADMIN_TOKEN', `${short}\n`);
    expect([exitCode, stderr]).toEqual([
      0,
      'gateway: warning: the file that SVC_ADMIN_TOKEN_FILE names has fewer than 16 characters: it can be guessed\n',
    ]);
    expect(stdout).toContain('replicas:');
    expect(stdout).not.toContain(short);
  });
});

import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readAdminTokens } from '../../../src/config/secrets/admin-tokens.ts';
import { readEnvironmentSecrets } from '../../../src/config/secrets/environment-secrets.ts';
import { SecretError } from '../../../src/config/secrets/read-secret.ts';

const ADMIN = 'admin-token-of-the-test';
const READ = 'read-token-of-the-test';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spangate-secrets-'));
});
afterAll(() => rm(directory, { recursive: true }));

let fileCount = 0;
/** Writes a file and returns its path. */
async function fileOf(content: string | Uint8Array): Promise<string> {
  fileCount += 1;
  const path = join(directory, `secret-${fileCount}`);
  await writeFile(path, content);
  return path;
}

/** The message that the tokens of this environment are refused with. */
const refusalOf = (env: Readonly<Record<string, string>>) =>
  readAdminTokens(env).then(
    () => 'accepted',
    (error: unknown) => (error instanceof SecretError ? error.message : String(error)),
  );

describe('the tokens of the admin API', () => {
  test('come from variables, and an empty one is none', async () => {
    expect(await readAdminTokens({ SVC_ADMIN_TOKEN: ADMIN, SVC_READ_TOKEN: READ })).toEqual({
      tokens: [
        { name: 'admin', role: 'admin', token: ADMIN },
        { name: 'reader', role: 'reader', token: READ },
      ],
      warnings: [],
    });
    const none = { tokens: [], warnings: [] };
    expect(await readAdminTokens({ SVC_ADMIN_TOKEN: '', SVC_READ_TOKEN_FILE: '' })).toEqual(none);
    expect(await readAdminTokens({})).toEqual(none);
  });

  test('come from files, without the line break at their end', async () => {
    const env = {
      SVC_ADMIN_TOKEN_FILE: await fileOf(`${ADMIN}\n`),
      SVC_READ_TOKEN_FILE: await fileOf(`${READ}\r\n`),
    };
    expect(await readAdminTokens(env)).toEqual({
      tokens: [
        { name: 'admin', role: 'admin', token: ADMIN },
        { name: 'reader', role: 'reader', token: READ },
      ],
      warnings: [],
    });
  });

  test('are ready to use with an empty variable beside the file', async () => {
    const env = { SVC_ADMIN_TOKEN: '', SVC_ADMIN_TOKEN_FILE: await fileOf(ADMIN) };
    expect((await readAdminTokens(env)).tokens).toMatchObject([{ token: ADMIN }]);
  });

  test('cause a warning when they can be guessed or have white space around them', async () => {
    const env = { SVC_ADMIN_TOKEN: ` ${ADMIN}\n`, SVC_READ_TOKEN_FILE: await fileOf('short\n') };
    expect((await readAdminTokens(env)).warnings).toEqual([
      'SVC_ADMIN_TOKEN has white space around it, which is ignored',
      'the file that SVC_READ_TOKEN_FILE names has fewer than 16 characters: it can be guessed',
    ]);
  });
});

describe('a file of tokens', () => {
  test('holds one per line, with or without names, so that an old and a new one are valid at once', async () => {
    const env = {
      SVC_ADMIN_TOKEN_FILE: await fileOf(`alice: ${ADMIN}-1\n\n${ADMIN}-2\r\n bob:\t${ADMIN}-3\n`),
      SVC_OPERATOR_TOKEN_FILE: await fileOf(`${ADMIN}-4\n${ADMIN}:5`),
      SVC_READ_TOKEN: `x:${READ}`,
    };
    expect(await readAdminTokens(env)).toEqual({
      tokens: [
        { name: 'alice', role: 'admin', token: `${ADMIN}-1` },
        { name: 'admin-2', role: 'admin', token: `${ADMIN}-2` },
        { name: 'bob', role: 'admin', token: `${ADMIN}-3` },
        { name: 'operator', role: 'operator', token: `${ADMIN}-4` },
        { name: 'operator-2', role: 'operator', token: `${ADMIN}:5` },
        { name: 'reader', role: 'reader', token: `x:${READ}` },
      ],
      warnings: [
        'line 4 of the file that SVC_ADMIN_TOKEN_FILE names has white space around it, which is ignored',
      ],
    });
  });

  test('is refused when two tokens have one name, or a line has none that can match', async () => {
    const twice = await fileOf(`alice: ${ADMIN}-1\nbob: ${ADMIN}-2\nalice: ${ADMIN}-3\n`);
    const place = 'of the file that SVC_ADMIN_TOKEN_FILE names';
    expect(await refusalOf({ SVC_ADMIN_TOKEN_FILE: twice })).toBe(
      `line 1 ${place} and line 3 ${place} have the same name: give one of them another`,
    );
    const spaced = await fileOf(`alice: ${ADMIN}-1\nbob smith: ${ADMIN}-2\n`);
    expect(await refusalOf({ SVC_ADMIN_TOKEN_FILE: spaced })).toBe(
      `line 2 ${place} can never match: it may contain only printable ASCII characters and no spaces`,
    );
  });

  test('may name a token `__proto__`', async () => {
    const env = { SVC_READ_TOKEN_FILE: await fileOf(`__proto__: ${READ}\n`) };
    expect((await readAdminTokens(env)).tokens).toEqual([{ name: '__proto__', role: 'reader', token: READ }]);
  });
});

describe('tokens are refused, with a message that holds neither a token nor a path,', () => {
  test('when a variable and its file are both set', async () => {
    const path = await fileOf(ADMIN);
    expect(await refusalOf({ SVC_ADMIN_TOKEN: ADMIN, SVC_ADMIN_TOKEN_FILE: path })).toBe(
      'SVC_ADMIN_TOKEN and SVC_ADMIN_TOKEN_FILE are both set: set only one of them',
    );
  });

  test('when both are the same', async () => {
    const env = { SVC_ADMIN_TOKEN: ADMIN, SVC_READ_TOKEN_FILE: await fileOf(`${ADMIN}\n`) };
    expect(await refusalOf(env)).toBe(
      'SVC_ADMIN_TOKEN and the file that SVC_READ_TOKEN_FILE names hold the same token: ' +
        'each token must be another one',
    );
  });

  test.each([
    ['is not there', async () => join(directory, 'nothing'), 'cannot be read: there is no such file'],
    ['is a directory', async () => directory, 'is not a regular file'],
    ['is a FIFO', makeFifo, 'is not a regular file'],
    ['is empty', () => fileOf(''), 'is empty'],
    ['holds only line breaks', () => fileOf('\n\n'), 'is empty'],
    ['is too large to be a token', () => fileOf('x'.repeat(5_000)), 'is larger than 4096 bytes'],
    ['is not text', () => fileOf(Buffer.from([0x61, 0xff, 0x62])), 'is not text in UTF-8'],
    [
      'holds a token with a space',
      () => fileOf(`alice ${READ}\n`),
      'can never match: it may contain only printable ASCII characters and no spaces',
    ],
    ['holds too many tokens', () => fileOf('token\n'.repeat(33)), 'holds more than 32 tokens'],
  ])('when the file %s', async (_, toPath, problem) => {
    expect(await refusalOf({ SVC_READ_TOKEN_FILE: await toPath() })).toBe(
      `the file that SVC_READ_TOKEN_FILE names ${problem}`,
    );
  });
});

async function makeFifo(): Promise<string> {
  const path = join(directory, 'fifo');
  execFileSync('mkfifo', [path]);
  return path;
}

describe('the salt of the prefix hashes', () => {
  const readHashSalt = async (env: Record<string, string>) =>
    (await readEnvironmentSecrets(env)).secrets.hashSalt;

  test('comes from its variable or its file', async () => {
    expect(await readHashSalt({ SVC_HASH_SALT: 'pepper' })).toBe('pepper');
    expect(await readHashSalt({ SVC_HASH_SALT_FILE: await fileOf('pepper\n') })).toBe('pepper');
    expect(await readHashSalt({})).toBeNull();
  });

  test('is refused when its file is empty', async () => {
    await expect(readHashSalt({ SVC_HASH_SALT_FILE: await fileOf('\n') })).rejects.toThrow(SecretError);
  });
});

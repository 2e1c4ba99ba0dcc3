import { mkdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ConfigFiles, loadConfig } from '#config';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';

// biome-ignore lint/suspicious/noTemplateCurlyInString: a reference in the file
const TEXT = 'replicas: [{ name: a, url: "http://a", api_key: "${file:key}" }]\n';

async function createFiles() {
  const folder = await temporaryFolder();
  const [path, key] = [join(folder, 'gateway.yaml'), join(folder, 'key')];
  await Promise.all([writeFile(path, TEXT), writeFile(key, 'secret-1\n')]);
  const files = new ConfigFiles();
  const load = async () => files.adopt((await loadConfig(path, {})).files);
  await load();
  return { path, key, files, load };
}

test('files that are as they were read have not changed, even if they were touched', async () => {
  const { path, key, files } = await createFiles();
  expect(await files.findChanged()).toEqual([]);
  await utimes(path, 1, 1);
  await writeFile(key, 'secret-1\n');
  expect(await files.findChanged()).toEqual([]);
});

test('the configuration and a file that it refers to are compared by what is in them', async () => {
  const { path, key, files, load } = await createFiles();
  await writeFile(key, 'secret-2\n');
  expect(await files.findChanged()).toEqual([key]);
  await writeFile(path, `${TEXT}# more\n`);
  expect(await files.findChanged()).toEqual([path, key]);
  await writeFile(path, TEXT);
  expect(await files.findChanged()).toEqual([key]);
  await load();
  expect(await files.findChanged()).toEqual([]);
});

test('a file that cannot be read has changed, until it is back', async () => {
  const { path, key, files } = await createFiles();
  await rm(key);
  expect(await files.findChanged()).toEqual([key]);
  await mkdir(key);
  expect(await files.findChanged()).toEqual([key]);
  await rm(key, { recursive: true });
  await writeFile(key, 'secret-1');
  expect(await files.findChanged()).toEqual([]);
  await rm(path);
  expect(await files.findChanged()).toEqual([path]);
});

test('no content is kept', async () => {
  const { path } = await createFiles();
  const { files } = await loadConfig(path, {});
  expect(JSON.stringify(files)).not.toContain('secret');
});

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { readSnippets } from '#testkit/docs-snippets.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { readCommands } from '#testkit/shell-commands.ts';
import { findDebian, findInVenv } from '../../../bench/rivals/installed.ts';

const run = promisify(execFile);
const PAGE = join(import.meta.dirname, '../../../../docs/comparison.md');

test('docs/comparison.md: nginx accepts its configuration', async ({ skip }) => {
  const { obstacle, command } = findDebian('nginx');
  if (obstacle !== null) return skip(`nginx: ${obstacle}`);
  const folder = await temporaryFolder();
  const config = (await readSnippets(PAGE, 'nginx')).get('From nginx') ?? '';
  // One that is unpacked and not installed lacks the folders that it was built for.
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${join(folder, kind)};`,
  );
  await writeFile(
    join(folder, 'nginx.conf'),
    `pid ${join(folder, 'pid')};\n${config
      .replace('listen 8080', 'listen 127.0.0.1:1')
      .replace('http {', `http { access_log off; ${paths.join(' ')}`)}`,
  );
  const args = ['-t', '-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')];
  const { stderr } = await run(command.file, args, { env: { ...process.env, ...command.env } });
  expect(stderr).toContain('test is successful');
});

test('docs/comparison.md: vllm-router accepts its command line', async ({ skip }) => {
  const { obstacle } = findInVenv('vllm-router', 'vllm-router');
  if (obstacle !== null) return skip(`vllm-router: ${obstacle}`);
  const snippet = (await readSnippets(PAGE, 'sh')).get('From vllm-router') ?? '';
  const [[, ...args] = []] = readCommands(snippet);
  const script = `
import json, sys
from vllm_router.launch_router import parse_router_args
found = parse_router_args(sys.argv[1:])
print(json.dumps([found.policy, found.worker_urls, found.request_timeout_secs]))`;
  const { stdout } = await run(findInVenv('vllm-router', 'python').command.file, ['-c', script, ...args]);
  expect(JSON.parse(stdout)).toEqual([
    'cache_aware',
    ['http://10.0.0.11:8000', 'http://10.0.0.12:8000'],
    900,
  ]);
});

test('docs/comparison.md: LiteLLM reads its configuration', async ({ skip }) => {
  const { obstacle } = findInVenv('litellm', 'litellm');
  if (obstacle !== null) return skip(`litellm: ${obstacle}`);
  const config = (await readSnippets(PAGE, 'yaml')).get('From LiteLLM') ?? '';
  expect(config).toMatch(/^# LiteLLM\n/);
  const script = `
import json, sys, yaml, litellm
config = yaml.safe_load(sys.stdin)
router = litellm.Router(model_list=config["model_list"], **config["router_settings"])
known = [key for key in config["litellm_settings"] if hasattr(litellm, key)]
print(json.dumps([router.get_model_names(), router.routing_strategy, router.num_retries, len(router.model_list), known]))`;
  const child = run(findInVenv('litellm', 'python').command.file, ['-c', script], {
    env: { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
  });
  child.child.stdin?.end(config);
  const [names, ...rest] = JSON.parse((await child).stdout.trim().split('\n').at(-1) ?? '');
  expect(new Set(names)).toEqual(new Set(['gpt-4o']));
  expect(rest).toEqual(['least-busy', 1, 2, ['callbacks', 'turn_off_message_logging']]);
});

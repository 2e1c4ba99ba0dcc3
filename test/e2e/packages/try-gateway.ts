import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Command, TOKEN } from './installed-package.ts';

/*
 * What a new user tries first, with a command that came out of the package or of a single file. Each of these fails
 * with an assertion.
 */

const chat = (model: string, more: object = {}) =>
  JSON.stringify({ model, messages: [{ role: 'user', content: 'What is a gateway?' }], ...more });

/** The quickstart answers a stream, prints its record, serves the dashboard, and ends with Ctrl-C. */
export async function tryQuickstart(command: Command): Promise<void> {
  const quickstart = command.start('quickstart', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0');
  const url = await quickstart.untilPrinted(/gateway +(http:\S+)\/v1/);
  const adminUrl = await quickstart.untilPrinted(/page +(http:\S+)\//);
  await quickstart.untilPrinted(/(Ctrl-C)/);
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    body: chat('demo', { stream: true }),
  });
  expect(await answer.text()).toMatch(/^data: \{.*data: \[DONE\]\n\n$/s);
  expect(await quickstart.untilPrinted(/(200 +sim-a +demo +chat)/)).not.toBe('');
  const page = await (await fetch(`${adminUrl}/`)).text();
  const assets = [...page.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, path]) => path);
  expect(assets.length).toBeGreaterThan(3);
  for (const path of assets) expect((await fetch(`${adminUrl}/${path}`)).status, path).toBe(200);
  expect(await quickstart.end('SIGINT')).toBe(0);
}

/**
 * Two workers serve, a drain moves requests to the other replica, a reload takes a third one in, and SIGTERM ends it all
 * with nothing cut. `folder`: for the files.
 */
export async function tryTwoWorkers(command: Command, folder: string): Promise<void> {
  const urls = await Promise.all(['a', 'b', 'c'].map((name) => startReplica(command, name)));
  const config = join(folder, 'gateway.yaml');
  const write = (names: readonly string[]) => writeFile(config, toConfig(folder, names, urls));
  await write(['a', 'b']);
  const gateway = command.start('-config', config);
  const addresses = await gateway.untilPrinted(/"listen":"([^"]+","adminListen":"[^"]+)"/);
  const [listen = '', adminListen = ''] = addresses.split('","adminListen":"');
  const admin = ['--admin', `http://${adminListen}`];
  /** The replicas that so many requests went to, in order. */
  const ask = async (count: number, text = '') => {
    for (let index = 0; index < count; index++) {
      const answer = await fetch(`http://${listen}/v1/chat/completions`, {
        method: 'POST',
        headers: { Connection: 'close' }, // each connection may come to another worker
        body: chat('m', { user: text }),
      });
      expect([answer.status, (await answer.text()).length > 0]).toEqual([200, true]);
    }
    const response = await fetch(`http://${adminListen}/admin/records?limit=${count}`, {
      headers: { Authorization: `Bearer ${TOKEN}` },
    });
    const { records } = (await response.json()) as { records: readonly { replica: string }[] };
    return new Set(records.map(({ replica }) => replica));
  };

  expect(await ask(8)).toEqual(new Set(['a', 'b']));
  expect(await ask(2, 'x'.repeat(100_000))).toEqual(new Set(['a', 'b'])); // bodies for a thread of their own
  expect(await command.run('drain', 'a', '--wait', ...admin)).toMatch(/safe to stop/);
  expect(await ask(4)).toEqual(new Set(['b']));
  await write(['a', 'b', 'c']);
  expect(await command.run('reload', ...admin)).toMatch(/replicas added: +c/);
  expect(await ask(4)).toEqual(new Set(['b', 'c']));
  await command.run('undrain', 'a', '--wait', ...admin);
  expect(await ask(6)).toEqual(new Set(['a', 'b', 'c']));
  expect(await gateway.end('SIGTERM')).toBe(0);
}

async function startReplica(command: Command, name: string): Promise<string> {
  const options = ['--port', '0', '--model', 'm', '--name', name, '--ttft', '0', '--tokens', '2'];
  return await command.start('simulate', ...options).untilPrinted(/ on (http:\S+)/);
}

function toConfig(folder: string, names: readonly string[], urls: readonly string[]): string {
  const replicas = names.map((name, index) => ({ name, url: urls[index], models: ['m'], engine: 'vllm' }));
  return JSON.stringify({
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0', workers: 2 },
    state_dir: join(folder, 'state'),
    replicas,
    export: { to: 'file' },
  });
}

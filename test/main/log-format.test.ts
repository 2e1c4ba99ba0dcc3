import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { EventLog } from '#testkit/event-log.ts';
import { chat, spawnMain, startReplica, writeConfig } from '#testkit/processes/main-process.ts';

/** A line of the log as text, without the lines of an error. */
const LINE = /^\d{4}-\d\d-\d\dT[\d:.]+Z (?:INFO |WARN |ERROR|DEBUG) \S/;

it('with log.format: text each line is text: of the gateway, of its workers, and of a crash', async () => {
  const replica = await startReplica();
  const away = '{ name: away, url: "http://127.0.0.1:9", models: [m], engine: openai }';
  const path = await writeConfig(
    `replicas: [{ name: a, url: "${replica.url}", models: [m], engine: openai }, ${away}]
export: { to: file }
metrics: { otlp: false }
log: { format: text, level: debug, requests: true }
`,
    2,
  );
  const preload = `process.on('SIGUSR2', () => { throw new TypeError('odd') })`;
  const { child, stdout, stderr, closed } = spawnMain(['-config', path], { preload });
  const lines = new EventLog<string>();
  createInterface({ input: stdout }).on('line', (line) => lines.push(line));
  const until = async (pattern: RegExp) => {
    // What never came is told with what did.
    await expect.poll(() => lines.items.join('\n')).toMatch(pattern);
    return lines.items.map((line) => pattern.exec(line)).find((found) => found !== null)?.[1] ?? '';
  };
  const address = await until(/ INFO {2}serving .*\blisten=(\S+) .*workers=2\b/);
  for (let sent = 0; sent < 2; sent++) await chat(`http://${address}`);
  await until(/ INFO {2}request .*\bmodel=m .*status=200\b/);
  await until(/ DEBUG attempt failed worker=\d .*replica=away\b/);
  for (const line of lines.items) expect(line).toMatch(LINE);
  const said: Buffer[] = [];
  stderr.on('data', (bytes: Buffer) => said.push(bytes));
  child.kill('SIGUSR2');
  expect(await closed).toMatchObject({ code: 1 });
  const crash = Buffer.concat(said).toString();
  expect(crash).toMatch(/^\S+Z FATAL uncaught exception\n {4}TypeError\n(?: {6}at .*\n)+$/);
});

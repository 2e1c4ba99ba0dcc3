import { describe, expect, it } from 'vitest';
import { COMMAND_NAMES, COMMANDS } from '../../../src/cli/arguments/command-table.ts';
import { invoke } from '../invoke.ts';

describe('the help', () => {
  it.each([[['--help']], [['-h']], [['help']]])('%j lists every command', async (args) => {
    const { exitCode, stdout } = await invoke(args);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^Usage: gateway -config FILE /);
    for (const name of COMMAND_NAMES) expect(stdout).toMatch(new RegExp(`^  ${name} +\\w`, 'm'));
  });

  it.each(COMMAND_NAMES)('of %s has its options and its examples, also as --help', async (name) => {
    const { exitCode, stdout } = await invoke(['help', name]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^Usage: gateway .*\n\n[A-Z]/);
    for (const option of Object.keys(COMMANDS[name].options)) expect(stdout).toContain(`--${option}`);
    for (const { line } of COMMANDS[name].examples) expect(stdout).toContain(`  ${line}\n`);
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
    for (const option of ['--help', '-h']) {
      expect((await invoke([name, 'a', option])).stdout).toBe(stdout);
    }
  });

  it('of one command looks like this', async () => {
    expect((await invoke(['help', 'undrain'])).stdout).toBe(`Usage: gateway undrain NAME [options]

Send requests to a replica again.

With --wait it repeats a call that gets no answer. The exit code is 0 only when the replica answers.
It is 1 when --timeout is up; the command then says why the replica does not answer.

With --ramp the replica begins with 5 % of an even share of turns, which then grows. The default is
\`rollout.ramp\` of the configuration.

Options:
  NAME                the name of a replica
  -c, --config FILE   configuration file (default: SVC_CONFIG); -config works too
  --admin URL         the admin API (default: gateway.admin_listen of the configuration file)
  --ca FILE           PEM file: the authorities of an https:// gateway (default: those of Node)
  --cert FILE         PEM file: a client certificate for the gateway
  --key FILE          PEM file: the key of --cert
  --json              print JSON
  --reason TEXT       why; kept with the replica, in the log and in a span
  --wait              wait for the replica, and repeat calls that get no answer
  --timeout DURATION  how long --wait waits (default 10m for drain, 2m for undrain)
  --ramp DURATION     how long its share of turns grows; 0s: not at all, which also ends a ramp
  -h, --help          print this help

Examples:
  gateway undrain vllm-a --wait
      undrains it, and ends when it answers
  gateway undrain vllm-a --ramp 60s
      undrains it, and lets it warm up
`);
  });
});

describe('the version', () => {
  it('is that of the package', async () => {
    expect((await invoke(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect((await invoke(['version'])).stdout).toMatch(
      /^spangate \d+\.\d+\.\d+ \(node 26\.0\.0, \w+ \w+\)\n$/,
    );
    expect(JSON.parse((await invoke(['version', '--json'])).stdout)).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      node: '26.0.0',
      platform: expect.any(String),
      arch: expect.any(String),
    });
  });
});

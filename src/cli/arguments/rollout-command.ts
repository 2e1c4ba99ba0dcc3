import type { CommandSpec } from './command-spec.ts';
import { ADMIN_OPTIONS } from './shared-options.ts';

/** What a rollout does when a replica is worse than its peers, or cannot be judged. */
const VERDICT_MODES = ['strict', 'warn', 'off'] as const;

/** `gateway rollout`. */
export const ROLLOUT_COMMAND = {
  group: 'Change a running gateway',
  summary: 'restart replicas without a lost request, and judge each beside its peers',
  details: [
    'One replica after the other: it is drained until it is safe to stop, restarted, asked until it answers with its ' +
      'models, undrained with a ramp, and compared with its peers on like requests. The next one follows when it is as ' +
      'good. A replica that is worse is drained again, and the rollout stops.',
    'Without --exec and --watch it asks the person at the terminal to restart each replica. A rollout that stopped goes on ' +
      'with --resume.',
    'In --exec, {name}, {host}, {port} and {url} are those of the replica, each as one word. In quotes and substitutions write ' +
      '$1, $2, $3 and $4, or $GATEWAY_REPLICA_NAME, $GATEWAY_REPLICA_HOST, $GATEWAY_REPLICA_PORT and $GATEWAY_REPLICA_URL.',
    'The exit code is 0 when all replicas are done, 1 when a step failed, 3 when a replica is worse than its peers, 4 when ' +
      'a replica cannot be judged, 130 on Ctrl-C, 2 for a wrong command line.',
  ],
  argument: {
    name: 'NAME',
    help: 'the names of replicas',
    isOptional: true,
    isRepeatable: true,
    words: 'replica',
  },
  options: {
    ...ADMIN_OPTIONS,
    admin: {
      ...ADMIN_OPTIONS.admin,
      multiple: true,
      help: 'address of an admin API; one of a fleet is enough, of gateways that share no drains name each (default: gateway.admin_listen of the configuration file)',
    },
    model: { type: 'string', value: 'NAME', help: 'all replicas that serve this model' },
    all: { type: 'boolean', help: 'all replicas that are not drained' },
    exec: { type: 'string', value: 'COMMAND', help: 'the command that restarts a replica, run by /bin/sh' },
    watch: {
      type: 'boolean',
      help: 'wait until the engine goes away and comes back: something else restarts it',
    },
    probe: { type: 'boolean', help: 'the restarted engine must also answer a request for one token' },
    ramp: {
      type: 'string',
      value: 'DURATION',
      help: "how long the replica's share of turns grows before it is compared (default 60s)",
    },
    verdict: {
      type: 'string',
      value: 'MODE',
      help: 'strict: stop at a replica that is worse, or cannot be judged; warn: say so and go on; off: do not compare (default strict)',
      words: VERDICT_MODES,
    },
    'max-unavailable': {
      type: 'string',
      value: 'N',
      help: 'how many replicas may be away at a time (default 1)',
    },
    timeout: {
      type: 'string',
      value: 'DURATION',
      help: 'how long a replica may take to become idle (default 10m)',
    },
    'restart-timeout': {
      type: 'string',
      value: 'DURATION',
      help: 'how long a restart may take, and then the engine until it answers (default 30m)',
    },
    'compare-timeout': {
      type: 'string',
      value: 'DURATION',
      help: 'how long a comparison may take after the ramp (default 10m)',
    },
    force: {
      type: 'boolean',
      help: 'roll a replica even if no other one answers for one of its models',
    },
    reason: {
      type: 'string',
      value: 'TEXT',
      help: 'why; kept with the replicas, behind the mark of the rollout',
    },
    resume: { type: 'boolean', help: 'go on with the rollout that stopped' },
    new: { type: 'boolean', help: 'give up a rollout that is not finished, and begin another one' },
    state: {
      type: 'string',
      value: 'FILE',
      help: 'where the state is kept until the rollout is done (default: rollout.json in the folder spangate of XDG_STATE_HOME, or of ~/.local/state)',
    },
  },
  examples: [
    {
      line: "gateway rollout --model llama-3.3-70b --probe --exec 'ssh {host} sudo systemctl restart vllm'",
      does: 'rolls all replicas of a model',
    },
    { line: 'gateway rollout --resume', does: 'goes on after Ctrl-C, or after a replica was repaired' },
    {
      line: 'gateway rollout vllm-a --watch --verdict warn --json',
      does: 'rolls a replica that something else restarts, with one JSON object for each step',
    },
  ],
} as const satisfies CommandSpec;

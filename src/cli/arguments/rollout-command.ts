import type { CommandSpec } from './command-spec.ts';
import { ADMIN_OPTIONS } from './shared-options.ts';

/** What a rollout does when a replica is worse than its peers, or cannot be judged. */
const VERDICT_MODES = ['strict', 'warn', 'off'] as const;

/** What a rollout does after it has rolled a replica back. */
const AFTER_ROLLBACK = ['stop', 'continue'] as const;

/** `gateway rollout`. */
export const ROLLOUT_COMMAND = {
  group: 'Change a running gateway',
  summary: 'restart replicas without losing a request, and judge each beside its peers',
  details: [
    'For each replica in turn: drain it until it is safe to stop, restart it, wait until it answers with its models, undrain it with a ramp, and compare it with its peers on similar requests. If it is as good, the next one follows. If it is worse, it is drained again, and the rollout stops.',
    'Without --exec and --watch it asks the person at the terminal to restart each replica. --resume continues a rollout that stopped, and takes corrections: another --exec, other time-outs, --skip and --accept.',
    'In --exec, {name}, {host}, {port} and {url} are those of the replica, each as one word. In quotes and substitutions write $1, $2, $3 and $4, or $GATEWAY_REPLICA_NAME, $GATEWAY_REPLICA_HOST, $GATEWAY_REPLICA_PORT and $GATEWAY_REPLICA_URL.',
    'Exit codes: 0 all replicas are done, 1 a step failed, 3 a replica is worse than its peers, 4 one cannot be judged, 5 aborted, 130 Ctrl-C, 2 wrong command line.',
  ],
  argument: {
    name: 'NAME',
    help: 'the names of replicas; with --resume the ID of a rollout that began elsewhere',
    isOptional: true,
    isRepeatable: true,
    words: 'replica',
  },
  options: {
    ...ADMIN_OPTIONS,
    admin: {
      ...ADMIN_OPTIONS.admin,
      multiple: true,
      help: 'an admin API; may be repeated: name one gateway of a fleet, but each that shares no drains (default: gateway.admin_listen of the configuration file)',
    },
    model: { type: 'string', value: 'NAME', help: 'all replicas that serve this model' },
    all: { type: 'boolean', help: 'all replicas that are not drained' },
    exec: { type: 'string', value: 'COMMAND', help: 'the command that restarts a replica, run by /bin/sh' },
    watch: {
      type: 'boolean',
      help: 'wait until the engine goes away and comes back, because something else restarts it',
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
      help: 'strict: stop at a replica that is worse or cannot be judged; warn: say so and go on; off: do not compare (default strict)',
      words: VERDICT_MODES,
    },
    shadow: {
      type: 'string',
      value: 'SHARE',
      help: 'first judge the restarted replica by copies of this share of live requests, such as 5%, before clients get its answers',
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
      help: 'how long a restart may take, and then the engine until it answers, each (default 30m)',
    },
    'compare-timeout': {
      type: 'string',
      value: 'DURATION',
      help: 'how long a comparison may take after the ramp (default 10m)',
    },
    'on-bad': {
      type: 'string',
      value: 'COMMAND',
      help: 'the command that rolls back a replica that is worse, run like --exec; the replica then serves again',
    },
    'on-bad-then': {
      type: 'string',
      value: 'WORD',
      help: 'what follows a rollback: stop, or continue with the next replica (default stop)',
      words: AFTER_ROLLBACK,
    },
    skip: {
      type: 'string',
      multiple: true,
      value: 'NAME',
      help: 'leave this replica out; may be repeated',
      words: 'replica',
    },
    accept: {
      type: 'string',
      multiple: true,
      value: 'NAME',
      help: 'keep this replica whatever its verdict; may be repeated',
      words: 'replica',
    },
    force: {
      type: 'boolean',
      help: 'roll a replica even if no other one answers for one of its models',
    },
    reason: {
      type: 'string',
      value: 'TEXT',
      help: 'why; kept with the replicas, after the mark of the rollout',
    },
    resume: {
      type: 'boolean',
      help: 'continue the rollout that stopped here or, with an ID, one that stopped elsewhere',
    },
    new: { type: 'boolean', help: 'give up an unfinished rollout, and begin another one' },
    state: {
      type: 'string',
      value: 'FILE',
      help: 'where the state is kept until it is done (default: spangate/rollout.json in XDG_STATE_HOME, or in ~/.local/state)',
    },
  },
  examples: [
    {
      line: "gateway rollout --model llama-3.3-70b --probe --exec 'ssh {host} sudo systemctl restart vllm'",
      does: 'rolls all replicas of a model',
    },
    { line: 'gateway rollout --resume', does: 'goes on after Ctrl-C or a repair' },
    {
      line: "gateway rollout --resume --exec 'ssh {host} ./install v2.1' --skip vllm-c",
      does: 'goes on with another command, without one replica',
    },
    {
      line: 'gateway rollout vllm-a --watch --verdict warn --json',
      does: 'rolls a replica that something else restarts, and prints one JSON object per step',
    },
  ],
} as const satisfies CommandSpec;

import type { CommandSpec } from './command-spec.ts';
import { ROLLOUT_COMMAND } from './rollout-command.ts';
import { ADMIN_OPTIONS, CERTIFICATE_OPTIONS, CONFIG_OPTION, DRAIN_OPTIONS } from './shared-options.ts';

const LOOK = 'Look at a running gateway';
const CHANGE = 'Change a running gateway';

const REPLICA = { name: 'NAME', help: 'the name of a replica', words: 'replica' } as const;

/** The states of replicas, the most urgent first. */
const REPLICA_STATES = [
  ...['unreachable', 'failing', 'loading', 'not-seen-yet'],
  ...['draining', 'drained', 'removed', 'serving'],
] as const;

/** On a narrow terminal. */
const WIDE_OPTION = {
  wide: { type: 'boolean', help: 'show all columns and whole names, however narrow the terminal is' },
} as const;

/** What the rows of the live views are sorted by. */
const SORT_KEYS = ['inflight', 'errors', 'requests', 'latency', 'name'] as const;
/** What the live view has a row for. */
const GROUPINGS = ['replica', 'model', 'tenant'] as const;

/** The commands that call the admin API of a running gateway. */
export const OPERATOR_COMMANDS = {
  replicas: {
    group: LOOK,
    summary: 'show the replicas: state, requests in flight, whether they are safe to stop',
    details: [
      'On a narrow terminal it leaves out columns and shortens long names in the middle. Without a terminal, with --wide ' +
        'and with --json it shows everything.',
    ],
    options: {
      ...ADMIN_OPTIONS,
      state: {
        type: 'string',
        multiple: true,
        value: 'STATE',
        help: `only replicas in this state, which may be given several times: ${REPLICA_STATES.join(', ')}`,
        words: REPLICA_STATES,
      },
      model: { type: 'string', value: 'NAME', help: 'only replicas that serve this model' },
      ...WIDE_OPTION,
    },
    examples: [
      { line: 'gateway replicas -c gateway.yaml', does: 'shows a table' },
      {
        line: 'gateway replicas --state unreachable --state failing',
        does: 'shows the replicas that get no requests because something is wrong',
      },
      {
        line: "gateway replicas --json | jq -r '.replicas[] | select(.drained) | .name'",
        does: 'prints the names of the drained replicas',
      },
    ],
  },
  status: {
    group: LOOK,
    summary: 'say what is wrong with a running gateway, and what to do',
    details: [
      'A head with the name, the version and the load of the gateway, then a line for each condition: the most severe first, ' +
        'then the oldest. The page, the metrics and the log have the same ones (docs/troubleshooting.md). With --verbose, and on a ' +
        'terminal from 100 columns on, each has what to do below it. --json prints the answer of GET /admin/conditions; of ' +
        'several gateways a list.',
      'With --watch it looks again until q or Ctrl-C. Without a terminal it then prints only when a condition begins or ends, or ' +
        'a gateway begins or ceases to answer.',
      'The exit code is 0 if nothing is worse than a notice, 1 with a warning, 2 with a critical condition, and 3 if a ' +
        'gateway could not be asked: it does not answer, refuses the token, or the command line or the configuration is ' +
        'wrong. With --watch it is that of the last look.',
    ],
    options: {
      ...ADMIN_OPTIONS,
      admin: {
        ...ADMIN_OPTIONS.admin,
        multiple: true,
        help: 'address of an admin API; may be repeated (default: gateway.admin_listen of the configuration file)',
      },
      verbose: { type: 'boolean', short: 'v', help: 'say what to do about each condition' },
      watch: { type: 'boolean', help: 'look again and again' },
      interval: { type: 'string', value: 'DURATION', help: 'how often --watch looks (default 2s)' },
    },
    examples: [
      { line: 'gateway status -c gateway.yaml', does: 'says what is wrong' },
      {
        line: 'gateway status --admin http://gw-1:9090 --admin http://gw-2:9090 --watch',
        does: 'keeps an eye on two gateways',
      },
      { line: "gateway status --json | jq -r '.conditions[].sentence'", does: 'prints only the sentences' },
    ],
  },
  health: {
    group: LOOK,
    summary: 'ask /healthz of the gateway, for the health check of a container',
    details: [
      'It reads the address from the configuration file. The exit code is 0 if the answer is ok within 5 seconds, else 1: ' +
        'also during a shutdown.',
    ],
    options: { ...CONFIG_OPTION, ...CERTIFICATE_OPTIONS },
    examples: [{ line: 'gateway health -c gateway.yaml', does: 'prints ok, or why not' }],
  },
  top: {
    group: LOOK,
    summary: 'show the traffic of the last minute, live',
    details: [
      'Replicas that are unreachable or failing come first. On a narrow terminal it leaves out columns, and shortens long ' +
        'names in the middle.',
      'On a terminal: q or Ctrl-C quits, s changes what the rows are sorted by, b what there is a row for. Errors are 5xx ' +
        'answers and broken responses; times are those of successful requests. Shares of errors from 1 % are yellow, from ' +
        '5 % red; shares of 4xx from 10 % are yellow. Without a terminal, or with --once, it prints the figures once.',
      'The errors of a replica are those of its attempts, also where another replica answered in the end; refused ' +
        'connections are among them. Its times are without waiting and other attempts. If some failed, there is a column ' +
        'for its attempts. Errors and times of models and tenants are those of requests, with all that they waited for.',
    ],
    options: {
      ...ADMIN_OPTIONS,
      by: {
        type: 'string',
        value: 'WHAT',
        help: `a row for each ${GROUPINGS.join(', ')} (default replica)`,
        words: GROUPINGS,
      },
      sort: {
        type: 'string',
        value: 'KEY',
        help: `sort by ${SORT_KEYS.join(', ')} (default inflight)`,
        words: SORT_KEYS,
      },
      once: { type: 'boolean', help: 'print the figures once' },
      interval: { type: 'string', value: 'DURATION', help: 'how often it looks (default 1s)' },
    },
    examples: [
      { line: 'gateway top --sort errors', does: 'shows the replicas with most errors first' },
      { line: 'gateway top --by tenant --once', does: 'prints the traffic of each tenant' },
    ],
  },
  records: {
    group: LOOK,
    summary: 'show the latest request records, one line each',
    details: [
      'The oldest of them comes first. The gateway keeps the last 500 in memory. Filters are combined. With --json each line is the record as JSON, for jq.',
      'With --follow it prints new records as they come, until Ctrl-C. It goes on when the gateway has restarted.',
      'On a narrow terminal it leaves out columns, the trace id among them, and shortens long names in the middle. Without a ' +
        'terminal and with --wide it shows everything.',
    ],
    options: {
      ...ADMIN_OPTIONS,
      follow: { type: 'boolean', short: 'f', help: 'print new records as they come' },
      failed: { type: 'boolean', help: 'only failures: a status from 400, or a broken response' },
      replica: { type: 'string', value: 'NAME', help: 'only requests to this replica', words: 'replica' },
      model: { type: 'string', value: 'NAME', help: 'only requests for this model' },
      tenant: { type: 'string', value: 'NAME', help: 'only requests of this tenant' },
      status: {
        type: 'string',
        value: 'STATUS',
        help: 'only this status, or a class of them: 429, 4xx, 5xx',
        words: ['2xx', '4xx', '5xx'],
      },
      limit: {
        type: 'string',
        short: 'n',
        value: 'N',
        help: 'at most this many, from 1 to 500 (default 20)',
      },
      interval: { type: 'string', value: 'DURATION', help: 'how often --follow looks (default 1s)' },
      ...WIDE_OPTION,
    },
    examples: [
      { line: 'gateway records --failed', does: 'shows the latest failures' },
      { line: 'gateway records --follow --replica vllm-a', does: 'follows one replica' },
      {
        line: "gateway records --limit 500 --json | jq -r 'select(.e2e_ms > 10000) | .trace_id'",
        does: 'prints the traces of slow requests',
      },
    ],
  },
  stats: {
    group: LOOK,
    summary: 'show the export counters',
    options: ADMIN_OPTIONS,
    examples: [{ line: 'gateway stats --json | jq .dropped', does: 'prints how many records were dropped' }],
  },
  verdict: {
    group: LOOK,
    summary: 'say whether replicas are as good as others, by the requests that the gateway has served',
    details: [
      'CANDIDATE and BASELINE are names of replicas with commas between them, model:NAME, host:NAME, or ' +
        'pod.label/KEY=VALUE. Without BASELINE, all other replicas that serve a model of the candidate are meant.',
      'Asking often costs nothing: the verdict stays as sure as it is. Several gateways are asked when --admin is given ' +
        'several times; one that finds the candidate bad decides, and then one that finds it good.',
      'The exit code is 0 for good, 3 for bad, 4 for undecided, 1 if the gateway cannot be asked or refuses, 2 for a wrong ' +
        'command line.',
    ],
    argument: {
      name: 'CANDIDATE [BASELINE]',
      help: 'who is judged, and beside whom',
      isRepeatable: false,
      words: 'replica',
    },
    options: {
      ...ADMIN_OPTIONS,
      admin: {
        ...ADMIN_OPTIONS.admin,
        multiple: true,
        help: 'address of an admin API; may be repeated (default: gateway.admin_listen of the configuration file)',
      },
      since: {
        type: 'string',
        value: 'TIME',
        help: 'only requests since this time, or since so long ago, such as 10m (default: the last drain or undrain of the candidate, or the start of the gateway)',
      },
      wait: {
        type: 'string',
        value: 'DURATION',
        help: 'ask again until it is decided, for at most so long (default: ask once)',
      },
    },
    examples: [
      { line: 'gateway verdict vllm-3', does: 'compares a replica with all others of its model' },
      {
        line: 'gateway verdict pod.label/version=v2 pod.label/version=v1 --wait 10m',
        does: 'waits until one group of pods is known to be as good as another one, or worse',
      },
    ],
  },
  gateways: {
    group: LOOK,
    summary: 'show the gateways that share their drains with this one',
    options: ADMIN_OPTIONS,
    examples: [{ line: 'gateway gateways', does: 'shows which of them are alive' }],
  },
  drain: {
    group: CHANGE,
    summary: 'send no new requests to a replica',
    details: [
      'Requests in flight go on to their end. The drain lasts until an undrain, also over restarts of the gateway.',
      'If no other replica of one of its models answers, it asks first. Without a terminal, and with --json, it refuses.',
      'With --wait it also shows how the requests in flight end, and repeats a call that gets no answer for 30 s. The exit ' +
        'code is 0 only when the replica is safe to stop. It is 1 when --timeout is up, when somebody undrains the ' +
        'replica, or on Ctrl-C; the drain then stays in force.',
    ],
    argument: REPLICA,
    options: {
      ...DRAIN_OPTIONS,
      force: { type: 'boolean', help: 'drain even if no other replica of one of its models answers' },
      'unless-last': {
        type: 'boolean',
        help: 'refuse, and do not ask, if no other replica of one of its models answers',
      },
    },
    examples: [
      {
        line: "gateway drain vllm-a --wait --reason 'new weights'",
        does: 'drains it, and ends when it is safe to stop',
      },
    ],
  },
  undrain: {
    group: CHANGE,
    summary: 'send requests to a replica again',
    details: [
      'With --wait it repeats a call that gets no answer. The exit code is 0 only when the replica answers. It is 1 ' +
        'when --timeout is up; the command then says why the replica does not answer.',
      'With --ramp a replica that was drained gets 5 % of an even share of turns at first, and more and more of them. Without ' +
        'it, `rollout.ramp` of the configuration counts.',
    ],
    argument: REPLICA,
    options: {
      ...DRAIN_OPTIONS,
      ramp: {
        type: 'string',
        value: 'DURATION',
        help: 'how long its share of turns grows; 0s: not at all, which also ends a ramp',
      },
    },
    examples: [
      { line: 'gateway undrain vllm-a --wait', does: 'undrains it, and ends when it answers' },
      { line: 'gateway undrain vllm-a --ramp 60s', does: 'undrains it, and lets it warm up' },
    ],
  },
  rollout: ROLLOUT_COMMAND,
  reload: {
    group: CHANGE,
    summary: 'read the configuration file and the files of the tokens again',
    details: [
      'No request is cut. It prints what has changed, and which keys need a restart. If the file has mistakes, it prints ' +
        'them all, nothing changes, and the exit code is 2.',
    ],
    options: ADMIN_OPTIONS,
    examples: [
      {
        line: 'gateway check -c gateway.yaml >/dev/null && gateway reload -c gateway.yaml',
        does: 'checks the file first',
      },
    ],
  },
  forget: {
    group: CHANGE,
    summary: 'let drains no longer wait for a gateway that has stopped for good',
    argument: { name: 'NAME', help: 'the name of a gateway that has vanished', words: 'gateway' },
    options: ADMIN_OPTIONS,
    examples: [{ line: 'gateway forget gateway-2', does: 'forgets it' }],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;

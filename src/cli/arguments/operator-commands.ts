import type { CommandSpec } from './command-spec.ts';
import { HISTORY_COMMANDS } from './history-commands.ts';
import { ROLLOUT_COMMAND } from './rollout-command.ts';
import {
  ADMIN_OPTIONS,
  CERTIFICATE_OPTIONS,
  CONFIG_OPTION,
  DRAIN_OPTIONS,
  SEVERAL_GATEWAYS,
  SPAN_OPTIONS,
} from './shared-options.ts';

const LOOK = 'Look at a running gateway';
const CHANGE = 'Change a running gateway';

const REPLICA = { name: 'NAME', help: 'the name of a replica', words: 'replica' } as const;

/** The states of replicas, the most urgent first. */
const REPLICA_STATES = [
  ...['unreachable', 'failing', 'loading', 'not-seen-yet'],
  ...['draining', 'drained', 'removed', 'serving', 'shadow'],
] as const;

/** On a narrow terminal. */
const WIDE_OPTION = {
  wide: { type: 'boolean', help: 'show all columns and full names on a narrow terminal' },
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
      'On a narrow terminal it leaves out columns and shortens names. Without a terminal, and with --wide or --json, it shows everything.',
    ],
    options: {
      ...ADMIN_OPTIONS,
      state: {
        type: 'string',
        multiple: true,
        value: 'STATE',
        help: `only replicas in this state; may be repeated: ${REPLICA_STATES.join(', ')}`,
        words: REPLICA_STATES,
      },
      model: { type: 'string', value: 'NAME', help: 'only replicas that serve this model' },
      ...WIDE_OPTION,
    },
    examples: [
      { line: 'gateway replicas -c gateway.yaml', does: 'shows a table' },
      {
        line: 'gateway replicas --state unreachable --state failing',
        does: 'shows which get no requests because something is wrong',
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
      'It prints the name, the version and the load, then a line for each condition: the most severe first, then the oldest. The page, the metrics and the log have the same ones (docs/troubleshooting.md). With --verbose, and on a terminal of 100 columns or more, each says what to do. --json prints the answer of GET /admin/conditions; for several gateways, `gateways` lists theirs.',
      'With --watch it looks again until q or Ctrl-C. Without a terminal it then prints only what changes: conditions, and gateways that answer or do not.',
      'Exit codes: 0 nothing worse than a notice, 1 a warning, 2 a critical condition, 3 a gateway could not be asked, or the command line or configuration is wrong. With --watch, the last look counts.',
    ],
    options: {
      ...SEVERAL_GATEWAYS,
      verbose: { type: 'boolean', short: 'v', help: 'say what to do about each condition' },
      watch: { type: 'boolean', help: 'look again and again' },
      interval: { type: 'string', value: 'DURATION', help: 'how often --watch looks (default 2s)' },
    },
    examples: [
      { line: 'gateway status -c gateway.yaml', does: 'says what is wrong' },
      {
        line: 'gateway status --admin http://gw-1:9090 --admin http://gw-2:9090 --watch',
        does: 'watches two gateways',
      },
      { line: "gateway status --json | jq -r '.conditions[].sentence'", does: 'prints only the sentences' },
    ],
  },
  health: {
    group: LOOK,
    summary: 'ask /healthz of the gateway, for the health check of a container',
    details: [
      'It takes the address from the configuration file. The exit code is 0 if the answer is ok within 5 seconds, else 1, also during a shutdown.',
    ],
    options: { ...CONFIG_OPTION, ...CERTIFICATE_OPTIONS },
    examples: [{ line: 'gateway health -c gateway.yaml', does: 'prints ok, or why not' }],
  },
  'sign-in': {
    group: LOOK,
    summary: 'print a link that opens the page and signs in once',
    details: [
      'Whoever opens the link may do what the token in the environment allows, for twelve hours or until the gateway stops. It works once, within ten minutes.',
    ],
    options: ADMIN_OPTIONS,
    examples: [{ line: 'xdg-open "$(gateway sign-in -c gateway.yaml)"', does: 'opens the page' }],
  },
  top: {
    group: LOOK,
    summary: 'show the traffic of the last minute, live',
    details: [
      'Replicas that are unreachable or failing come first. On a narrow terminal it leaves out columns and shortens names. Without a terminal, or with --once, it prints the figures once.',
      'On a terminal: q or Ctrl-C quits, s changes the order, b what a row stands for. Errors are yellow from 1 %, and red from 5 % if there are three; three 4xx are yellow from 10 %.',
      'Errors are 5xx answers and broken responses; times are those of successful requests. A replica is judged by its attempts: its errors count, refused connections included, even if another replica answered in the end, and its times exclude waiting and other attempts. Its GPU time and cost are those of the requests that it answered last, with all of their attempts. Models and tenants are judged by requests, with all that they waited for.',
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
      { line: 'gateway top --sort errors', does: 'shows the replicas with the most errors first' },
      { line: 'gateway top --by tenant --once', does: 'prints the traffic of each tenant' },
    ],
  },
  records: {
    group: LOOK,
    summary: 'show request records, one line each: the latest, those of a span of time, or one by its id',
    details: [
      'The oldest comes first. The gateway keeps the last 500 in memory. Filters are combined. With --json each line is a record as JSON.',
      'With --since or --until they come from the history (docs/history.md), which --request and --trace search for an id. Each gateway knows only its own requests: for several, repeat --admin.',
      'With --follow it prints new records as they come, until Ctrl-C, even after the gateway restarts.',
      'On a narrow terminal it leaves out columns, the trace id among them, and shortens names. Without a terminal, and with --wide, it shows everything.',
    ],
    options: {
      ...SEVERAL_GATEWAYS,
      request: {
        type: 'string',
        value: 'ID',
        help: 'the request with this id: of the gateway, of the response, or of the client',
      },
      trace: { type: 'string', value: 'ID', help: 'the requests of this trace' },
      ...SPAN_OPTIONS,
      follow: { type: 'boolean', short: 'f', help: 'print new records as they come' },
      failed: { type: 'boolean', help: 'only failures: a status from 400, or a broken response' },
      replica: { type: 'string', value: 'NAME', help: 'only requests to this replica', words: 'replica' },
      model: { type: 'string', value: 'NAME', help: 'only requests for this model' },
      tenant: { type: 'string', value: 'NAME', help: 'only requests of this tenant' },
      client: { type: 'string', value: 'NAME', help: 'only requests of this client' },
      status: {
        type: 'string',
        value: 'STATUS',
        help: 'only this status or class: 429, 4xx, 5xx',
        words: ['2xx', '4xx', '5xx'],
      },
      limit: {
        type: 'string',
        short: 'n',
        value: 'N',
        help: 'at most this many, from 1 to 500, with the history to 100000 (default 20)',
      },
      interval: { type: 'string', value: 'DURATION', help: 'how often --follow looks (default 1s)' },
      ...WIDE_OPTION,
    },
    examples: [
      { line: 'gateway records --failed', does: 'shows the latest failures' },
      { line: 'gateway records --since 2h --tenant acme --failed', does: 'shows what failed for a tenant' },
      { line: 'gateway records --request 0f8fad5b-d9cb-469f-a165-70867728950e', does: 'finds a request' },
      {
        line: "gateway records --limit 500 --json | jq -r 'select(.e2e_ms > 10000) | .trace_id'",
        does: 'prints the traces of slow requests',
      },
    ],
  },
  ...HISTORY_COMMANDS,
  stats: {
    group: LOOK,
    summary: 'show the export counters',
    options: ADMIN_OPTIONS,
    examples: [{ line: 'gateway stats --json | jq .dropped', does: 'prints how many records were dropped' }],
  },
  verdict: {
    group: LOOK,
    summary: 'say whether replicas are as good as others, judged by the requests served',
    details: [
      'CANDIDATE and BASELINE are names of replicas, separated by commas, or model:NAME, host:NAME, or pod.label/KEY=VALUE. The default BASELINE is all other replicas that serve a model of the candidate.',
      'Asking often does not make the verdict less certain. If --admin is repeated, several gateways are asked: one that finds the candidate bad decides, otherwise one that finds it good.',
      'Exit codes: 0 good, 3 bad, 4 undecided, 1 the gateway cannot be asked or refuses, 2 wrong command line.',
    ],
    argument: {
      name: 'CANDIDATE [BASELINE]',
      help: 'who is judged, and beside whom',
      isRepeatable: false,
      words: 'replica',
    },
    options: {
      ...SEVERAL_GATEWAYS,
      since: {
        type: 'string',
        value: 'TIME',
        help: 'only requests since this time, or in the last, for example, 10m (default: since the candidate was last drained, undrained or a shadow, or came, or the start of the gateway)',
      },
      wait: {
        type: 'string',
        value: 'DURATION',
        help: 'ask again until it is decided, for at most this long (default: ask once)',
      },
    },
    examples: [
      { line: 'gateway verdict vllm-3', does: 'compares a replica with all others of its model' },
      {
        line: 'gateway verdict pod.label/version=v2 pod.label/version=v1 --wait 10m',
        does: 'waits until one group of pods is known to be as good as another, or worse',
      },
    ],
  },
  compare: {
    group: CHANGE,
    summary: 'judge a replica by copies of live requests whose answers no client gets',
    details: [
      'CANDIDATE, names separated by commas, becomes a shadow: it gets copies of a share of live requests, and its answers are compared with those that clients get, and dropped. At the end, or on Ctrl-C, it becomes what the configuration says. It is refused if a call has made it a shadow, or no other replica answers for one of its models.',
      'It needs the operator token.',
      'Exit codes: 0 good, 3 bad, 4 undecided, 1 the gateway cannot be asked or refuses, 2 wrong command line.',
    ],
    argument: {
      name: 'CANDIDATE [BASELINE]',
      help: 'who is judged, and beside whom (default: all other replicas of its models)',
      isRepeatable: false,
      words: 'replica',
    },
    options: {
      ...ADMIN_OPTIONS,
      shadow: {
        type: 'string',
        value: 'SHARE',
        help: 'the share of live requests to copy (default 10%)',
      },
      for: { type: 'string', value: 'DURATION', help: 'how long (default 30m)' },
      tolerance: { type: 'string', value: 'SHARE', help: 'how much slower it may be (default 1%)' },
      report: {
        type: 'string',
        value: 'FILE',
        help: 'write a report: Markdown (.md), or HTML with plots (.html)',
      },
    },
    examples: [
      {
        line: 'gateway compare vllm-new --shadow 10% --for 30m --report vllm-new.html',
        does: 'judges a new version of an engine by half an hour of requests',
      },
    ],
  },
  rollouts: {
    group: LOOK,
    summary: 'show the current and latest rollouts; pause, continue or abort one',
    details: [
      'It shows what each gateway rollout reports, on whatever machine it runs. With an ID it shows the replicas of one, with steps and verdicts, and what to do next.',
      'pause: no further replica begins; what has begun is finished. continue: it goes on. abort: it ends for good: its command is ended, and what is drained stays drained. Without an ID, the only current one is meant.',
    ],
    argument: {
      name: '[pause|continue|abort] [ID]',
      help: 'what is asked, and of which rollout',
      words: ['pause', 'continue', 'abort'],
    },
    options: {
      ...ADMIN_OPTIONS,
      watch: { type: 'boolean', help: 'look again each second, until q or Ctrl-C' },
    },
    examples: [
      { line: 'gateway rollouts --watch', does: 'follows them' },
      { line: 'gateway rollouts pause', does: 'pauses the current one' },
      { line: 'gateway rollouts 1a2b3c4d', does: 'shows the replicas of one, and the next step' },
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
      'Requests in flight are finished. The drain lasts until an undrain, even if the gateway restarts.',
      'If no other replica of one of its models answers, it asks first; without a terminal, or with --json, it refuses.',
      'With --wait it shows how the requests in flight end, and for 30 s repeats a call that gets no answer. The exit code is 0 only when the replica is safe to stop. It is 1 when --timeout is up, when somebody undrains the replica, or on Ctrl-C; the drain then stays in force.',
    ],
    argument: REPLICA,
    options: {
      ...DRAIN_OPTIONS,
      force: { type: 'boolean', help: 'drain even if no other replica of one of its models answers' },
      'unless-last': {
        type: 'boolean',
        help: 'refuse without asking if no other replica of one of its models answers',
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
      'With --wait it repeats a call that gets no answer. The exit code is 0 only when the replica answers. It is 1 when --timeout is up; the command then says why the replica does not answer.',
      'With --ramp the replica begins with 5 % of an even share of turns, which then grows. The default is `rollout.ramp` of the configuration.',
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
    summary: 'read the configuration file and the token files again',
    details: [
      'No request is cut. It prints what changed, and which keys need a restart. If the file has mistakes, it prints them all, nothing changes, and the exit code is 2.',
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
    summary: 'stop drains from waiting for a gateway that is gone for good',
    argument: { name: 'NAME', help: 'the name of a gateway that has vanished', words: 'gateway' },
    options: ADMIN_OPTIONS,
    examples: [{ line: 'gateway forget gateway-2', does: 'forgets it' }],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;

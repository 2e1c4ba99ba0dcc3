import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** The programs of the lab by name, each with one line for the list. */
export const PROGRAMS: Readonly<Record<string, string>> = {
  attacks: 'attacks on HTTP and TLS, by clients and by a replica; writes docs/evidence/attacks.md',
  backends: 'records in real backends, asked through their own APIs; writes docs/evidence/backends.md',
  conditions:
    'each condition in real processes: how soon every surface shows it; writes docs/evidence/conditions.md',
  'conditions/calm': 'an hour of load without a fault, and no condition; writes docs/evidence/conditions.md',
  cluster:
    'the chart, the gateway and tools of others on a real Kubernetes control plane; writes docs/evidence/cluster.md',
  bench: 'the gateway beside other proxies: CPU, latency, memory; writes docs/evidence/benchmarks.md',
  doors: 'the rooms of the sources, their doors, and what passes by them; with bounds, part of CI',
  engines: 'every exchange of every scripted engine through a gateway, byte for byte',
  fleet: 'rollouts and drains behind two gateways that share a Redis server',
  fuzz: 'readers of what comes from outside, on generated inputs; writes docs/evidence/reliability.md',
  'fuzz-admin': 'the admin API beside its OpenAPI document, by Schemathesis',
  'fuzz-forms':
    'the reader of forms beside Starlette and cpp-httplib, on generated forms and those of clients',
  'fuzz-go': 'the names in request bodies beside encoding/json of Go, on generated bodies',
  'fuzz-http': 'the HTTP/1.1 parser beside llhttp, on generated inputs',
  history:
    'a history of a million records: searches, sums, and a file at its limit; writes docs/evidence/history.md',
  'history/day':
    'a day of traffic by a clock of its own, with kills and full disks: usage beside the requests; writes docs/evidence/history.md',
  'history/kills': 'a gateway that is killed again and again: sums of its history beside those of its ledger',
  'history/limit':
    'a gateway whose history is at its limit for an hour: its sums beside what clients were answered; writes docs/evidence/history.md',
  image: 'the Dockerfile, built by buildah without privileges; the image started, asked and stopped',
  llama: 'a gateway before real llama.cpp servers',
  'llama/compare':
    'quantizations in real llama.cpp servers, compared by gateway compare; writes docs/evidence/shadow.md',
  mutation: 'small faults in the sources, and whether tests notice them; writes docs/evidence/mutation.md',
  overload:
    'more at once than a gateway takes: 500 bodies of 32 MiB, calls that wait; writes docs/evidence/reliability.md',
  release: 'the artefacts of a release, installed in clean folders, upgraded to and back under load',
  reliability: 'the cost of each fault; writes docs/evidence/reliability.md',
  simulation: 'whole gateways in a simulated world: network, clock, disk, replicas; thousands of seeds',
  repeat: 'the tests of each change again and again on a busy machine; writes docs/evidence/mutation.md',
  rollout: 'rollouts of replicas and an update of gateways under load',
  'openai-python': 'the OpenAI client for Python before a gateway with keys over https',
  soak: 'mixed requests and faults before a fleet, for long: failures, records, memory, latency; writes docs/evidence/reliability.md',
  'measure/beside':
    'the CPU time of a request beside that of another checkout, or beside one without GPU time',
  pictures: 'the pictures of the dashboard, of a fleet under load; writes docs/images',
  peers: 'health.peers before engines that fail or are slow, in real processes',
  'measure/cost': 'what requests cost and what is idle beside hours by price, to 0.1 %',
  'measure/clients': 'the CPU time of API keys, limits and tokens of an issuer',
  'measure/frozen':
    'how often and how soon health.frozen_after finds a replica, in simulated days; writes docs/evidence/frozen.md',
  'measure/fleet': 'the cost of shared state for Redis and a gateway',
  'measure/fleet-limits': 'what two gateways admit of the limits of clients',
  'measure/guard': 'the CPU time of a request, with a bound; part of CI',
  hops: 'the files and functions that one request and its record run',
  'measure/metrics': 'the time to count one record',
  'measure/metrics-stall': 'the longest turn of the event loop while metrics are read',
  'measure/pairs': 'how often the verdict on a shadow is wrong, and how many pairs it takes',
  'measure/pieces': 'the CPU time of single steps of a request',
  'measure/protocols':
    'the bytes and the CPU time of a record in protobuf and in JSON, here and in a collector',
  'measure/shadow': 'what clients wait with and without copies to a shadow',
  'measure/start':
    'what the first second, and the half minute after a start, cost; writes docs/evidence/benchmarks.md',
  'measure/stall': 'the longest turn of the event loop while a large body is read',
  'measure/rooms':
    'which rooms of the code a plain request spends its time in; writes docs/evidence/benchmarks.md',
  'measure/turns': 'what the longest turns of the event loop consist of; writes docs/evidence/benchmarks.md',
  'measure/verdict': 'how often the verdict of a rollout is wrong, in simulated rollouts',
  'measure/watch': 'how often and how soon health.peers finds a replica, in simulated days',
  systemd: 'the unit of systemd, started by a systemd in namespaces of its own',
  'tls/cpu': 'the CPU time of TLS beside nginx and Envoy, and of HTTP/2',
  'tls/rotation': 'certificates replaced again and again under load',
  vllm: 'a gateway before real vLLM servers, which are restarted under load; writes docs/evidence/engines.md',
};

/** The file of a program, from this folder. */
export const toFile = (name: string): string => (name.includes('/') ? `${name}.ts` : `${name}/main.ts`);

if (import.meta.main) runProgram(process.argv.slice(2));

/** Runs a program in a child process with the same Node; without a name, prints the list. */
function runProgram([name = '--help', ...options]: readonly string[]): void {
  if (name === '--help') {
    const lines = Object.entries(PROGRAMS).map(([each, summary]) => `  ${each.padEnd(24)}${summary}`);
    console.log(['npm run lab -- NAME [options]; NAME --help prints the options.', ...lines].join('\n'));
  } else if (name in PROGRAMS) {
    const args = [...process.execArgv, join(import.meta.dirname, toFile(name)), ...options];
    const child = spawn(process.execPath, args, { stdio: 'inherit' });
    // The program ends in order; this process ends with it.
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
    child.once('exit', (code) => process.exit(code ?? 1));
  } else {
    console.error(`There is no program ${name}: npm run lab prints the list.`);
    process.exitCode = 2;
  }
}

import { toKeyHelp } from './keyboard.ts';

/** What the introduction describes. URLs have no trailing slash. */
export interface RunningDemo {
  readonly gatewayUrl: string;
  readonly adminUrl: string;
  /** The link to the page that signs in once. */
  readonly signInUrl: string;
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  /** Names of replicas that are still drained from an earlier run. */
  readonly drained: readonly string[];
  /** The generated admin token; null if the user has set one, which is not printed. */
  readonly token: string | null;
  /** The collector's URL; null if records go to a file. */
  readonly collector: string | null;
  /** Where the configuration was saved. */
  readonly configPath: string;
  /** Whether keys are read. */
  readonly hasKeys: boolean;
}

/** Describes what is running and what to try. The commands work when pasted into a shell. */
export function toIntroduction(demo: RunningDemo): string {
  const { gatewayUrl, adminUrl, signInUrl, replicas, drained, token, collector, configPath, hasKeys } = demo;
  const toNote = (name: string): string => (drained.includes(name) ? ' (still drained)' : '');
  const records =
    collector === null
      ? 'state/records.jsonl, as OTLP JSON lines'
      : `sent to the collector at ${withoutSecrets(collector)}`;
  const [first = '', second = ''] = replicas.map(({ name }) => name);
  return `
Spangate is running, with two simulated replicas behind it. Open its page; the link signs in once, within ten minutes:

  ${signInUrl}
${hasKeys ? `\n${toKeyHelp(first, second)}\n` : ''}
Send a streaming request from another shell:

  curl -N ${gatewayUrl}/v1/chat/completions -H 'Content-Type: application/json' -H 'X-Tenant: acme' \\
    -d '{"model":"demo","stream":true,"messages":[{"role":"user","content":"What is a gateway?"}]}'

${toDrainHint(demo)}

Let a replica be slow (or failing, frozen, loading, normal), and ask what is wrong, who used how much, and what happened:
${token === null ? '' : `\n  export SVC_ADMIN_TOKEN=${token}`}
  npx gateway simulate scene slow ${second} --admin ${adminUrl}
  npx gateway status --admin ${adminUrl}
  npx gateway usage --by tenant --admin ${adminUrl}
  npx gateway timeline --admin ${adminUrl}

What runs where:

  gateway   ${gatewayUrl}/v1  (OpenAI API, model "demo")
  page      ${adminUrl}/  (asks for the admin token)
  admin     ${adminUrl}/admin  (token ${token ?? 'as in SVC_ADMIN_TOKEN'})
  replicas  ${replicas.map(({ name, url }) => `${name} ${url}${toNote(name)}`).join(', ')}
  records   ${records}
  config    ${configPath}  (copy it for your own: npx gateway -config FILE)

The record of each request appears as a line below, and what is wrong when it begins and ends. Press Ctrl-C to stop.

`;
}

/** Suggests a drain, or an undrain if a replica is still drained from an earlier run. */
function toDrainHint({ adminUrl, replicas, drained, token }: RunningDemo): string {
  const [stillDrained] = drained;
  const name = stillDrained ?? replicas[0]?.name ?? '';
  const action = stillDrained === undefined ? 'drain' : 'undrain';
  const title =
    action === 'drain'
      ? `Drain a replica: new requests then go to the other one, until you undrain it:`
      : `Undrain the replica that is still drained from an earlier run:`;
  return `${title}

  curl -X POST ${adminUrl}/admin/replicas/${name}/${action} -H "Authorization: Bearer ${token ?? '$SVC_ADMIN_TOKEN'}"`;
}

/** The URL of a collector may contain credentials. */
function withoutSecrets(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'the URL in the environment';
}

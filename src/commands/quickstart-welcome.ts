/** What runs, as the welcome tells it. URLs have no trailing slash. */
export interface Running {
  readonly gatewayUrl: string;
  readonly adminUrl: string;
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  /** Names of replicas that are still drained from last time. */
  readonly drained: readonly string[];
  /** The made-up admin token; null where the user has set one, which is not shown. */
  readonly token: string | null;
  /** The collector's URL, or null where records go to a file. */
  readonly collector: string | null;
  /** Where the configuration was saved. */
  readonly configPath: string;
}

/** What is running and what to try, as text whose commands work when pasted. */
export function toWelcome(running: Running): string {
  const { gatewayUrl, adminUrl, replicas, drained, token, collector, configPath } = running;
  const isDrained = (name: string): string => (drained.includes(name) ? ' (still drained)' : '');
  const records =
    collector === null
      ? 'state/records.jsonl, as OTLP JSON lines'
      : `go to the collector at ${withoutSecrets(collector)}`;
  return `
Spangate is running, with two simulated replicas behind it.

  gateway   ${gatewayUrl}/v1  (OpenAI API, model "demo")
  dashboard ${adminUrl}/  (asks for the admin token)
  admin     ${adminUrl}/admin  (token ${token ?? 'as in SVC_ADMIN_TOKEN'})
  replicas  ${replicas.map(({ name, url }) => `${name} ${url}${isDrained(name)}`).join(', ')}
  records   ${records}
  config    ${configPath}  (a start for your own: npx gateway -config FILE)

Try a stream:

  curl -N ${gatewayUrl}/v1/chat/completions -H 'Content-Type: application/json' -H 'X-Tenant: acme' \\
    -d '{"model":"demo","stream":true,"messages":[{"role":"user","content":"What is a gateway?"}]}'

${toDrainHint(running)}

Each request leaves a record: its line appears below. Ctrl-C stops everything.

`;
}

/** A drain to try; after one that has outlasted a restart, its undrain. */
function toDrainHint({ adminUrl, replicas, drained, token }: Running): string {
  const [stillDrained] = drained;
  const name = stillDrained ?? replicas[0]?.name ?? '';
  const action = stillDrained === undefined ? 'drain' : 'undrain';
  const title =
    action === 'drain'
      ? `Drain a replica, so that new requests go to the other (undrain brings it back):`
      : `Undrain the replica that is drained from last time:`;
  return `${title}

  curl -X POST ${adminUrl}/admin/replicas/${name}/${action} -H "Authorization: Bearer ${token ?? '$SVC_ADMIN_TOKEN'}"`;
}

/** Where an address can be reached on this machine. */
export function toUrl({ host, port }: { readonly host: string; readonly port: number }): string {
  const reachable = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/** Collectors' URLs may carry credentials. */
function withoutSecrets(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'the URL in the environment';
}

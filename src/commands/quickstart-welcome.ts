/** An address somebody listens on. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** What runs, as the welcome tells it. */
export interface Running {
  readonly listen: Address;
  readonly adminListen: Address;
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  /** The made-up admin token; null where the user has set one, which is not shown. */
  readonly token: string | null;
  /** The collector's URL, or null where records go to a file. */
  readonly collector: string | null;
  /** Where the configuration was saved. */
  readonly configPath: string;
}

/** What is running and what to try, as text whose commands work when pasted. */
export function toWelcome(running: Running): string {
  const { replicas, token, collector, configPath } = running;
  const gatewayUrl = toUrl(running.listen);
  const adminUrl = toUrl(running.adminListen);
  const tokenText = token ?? '$SVC_ADMIN_TOKEN';
  const drained = replicas[0]?.name ?? '';
  const records =
    collector === null
      ? 'OTLP JSON lines in state/records.jsonl'
      : `to the collector at ${withoutSecrets(collector)}`;
  return `
Spangate is running, with two simulated replicas behind it.

  gateway   ${gatewayUrl}/v1   OpenAI API, model "demo"
  admin     ${adminUrl}/admin   token ${token ?? 'as in SVC_ADMIN_TOKEN'}
  replicas  ${replicas.map(({ name, url }) => `${name} ${url}`).join('   ')}
  records   ${records}
  config    ${configPath}   copy it, put in your own replicas: gateway -config FILE

Try a stream:

  curl -N ${gatewayUrl}/v1/chat/completions -H 'Content-Type: application/json' -H 'X-Tenant: acme' \\
    -d '{"model":"demo","stream":true,"messages":[{"role":"user","content":"What is a gateway?"}]}'

Take a replica out of the rotation (undrain brings it back):

  curl -X POST ${adminUrl}/admin/replicas/${drained}/drain -H "Authorization: Bearer ${tokenText}"

Each request leaves a record: its line appears below. Ctrl-C stops everything.

`;
}

function toUrl({ host, port }: Address): string {
  const reachable = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/** Collectors' URLs may carry credentials. */
function withoutSecrets(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'the URL in the environment';
}

/** What the configuration of the quickstart sets beyond the defaults. */
export interface SampleConfig {
  readonly listen: string;
  readonly adminListen: string;
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  readonly exportTo: 'otlp' | 'file';
}

/** The configuration as a YAML file that users can start from, with comments. */
export function toConfigText({ listen, adminListen, replicas, exportTo }: SampleConfig): string {
  const replicaText = replicas.map(
    ({ name, url }, index) => `
  - name: ${name}
    url: ${url}
    host: sim-node-${index + 1}
    gpu_model: simulated
    gpu_count: 1
    models: [demo]                # or auto: read from its /v1/models
    engine: vllm                  # or auto: detected from its /v1/models`,
  );
  return `# The configuration of the quickstart. Copy this file, replace the replicas by your own, and serve it:
#   npx gateway -config gateway.yaml
gateway:
  listen: ${toYamlText(listen)}
  admin_listen: ${toYamlText(adminListen)}
headers: { tenant: X-Tenant, feature: X-Feature }
gpu_hour_price: { simulated: 2.5 } # what an hour of one GPU costs, by gpu_model; records then have their cost
currency: EUR
state_dir: ./state                # relative to this file
replicas:${replicaText.join('')}
retry: { statuses: [500, 503] }   # after these the other replica is tried, if nothing was sent to the client
health:                           # a replica that fails gets requests only if no other can take them
  frozen_after: 3s                # soon, for a demo; auto, the default, learns it from the traffic
  peers: { cool_down: 10s, ramp: 10s } # also one that is worse than the others; 1m each if you leave them out
export:
  to: ${exportTo}                        # otlp: to a collector; file: OTLP JSON lines in state_dir
`;
}

/** Quotes an unusual address of the command line, so that the schema checks it and YAML does not interpret it. */
function toYamlText(address: string): string {
  return /^[\w.-]+:\d+$/.test(address) ? address : JSON.stringify(address);
}

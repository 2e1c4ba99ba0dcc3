/** What the quickstart's configuration says beyond the defaults. */
export interface QuickstartConfig {
  readonly listen: string;
  readonly adminListen: string;
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  readonly exportTo: 'otlp' | 'file';
}

/** The configuration as a file to start from, with what it is good for. */
export function toConfigText({ listen, adminListen, replicas, exportTo }: QuickstartConfig): string {
  const replicaText = replicas.map(
    ({ name, url }, index) => `
  - name: ${name}
    url: ${url}
    host: sim-node-${index + 1}
    gpu_model: simulated
    gpu_count: 1
    models: [demo]                # or auto: read from its /v1/models
    engine: vllm                  # or auto: told by its /v1/models`,
  );
  return `# What the quickstart runs with. Copy this file, put in replicas of your own, and serve it:
#   npx gateway -config gateway.yaml
gateway:
  listen: ${quoted(listen)}
  admin_listen: ${quoted(adminListen)}
headers: { tenant: X-Tenant, feature: X-Feature }
state_dir: ./state                # relative to this file
replicas:${replicaText.join('')}
export:
  to: ${exportTo}                        # otlp: to a collector; file: OTLP JSON lines in state_dir
`;
}

/**
 * Addresses come from the command line: anything unusual is quoted, so that the schema judges it, not
 * YAML.
 */
function quoted(address: string): string {
  return /^[\w.-]+:\d+$/.test(address) ? address : JSON.stringify(address);
}

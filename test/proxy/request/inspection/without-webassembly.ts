/* A thread without WebAssembly: it inspects the bodies that it is given, and answers with what it has read of them. */
import { stripTypeScriptTypes } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';

// From here on Node can load TypeScript without it.
stripTypeScriptTypes('');
Reflect.deleteProperty(globalThis, 'WebAssembly');

const { wideStrings } = await import('#json/strings');
if (wideStrings !== null) throw new Error('there is WebAssembly');
const { endpointAt } = await import('#testkit/reading/response-reading.ts');
const { createBodyInspector } = await import('../../../../src/proxy/request/inspection/body-inspector.ts');

const endpoint = endpointAt('/v1/chat/completions');
const inspector = createBodyInspector(workerData.settings);
const inspected = workerData.bodies.map((body: Uint8Array) =>
  inspector.inspect([Buffer.from(body)], endpoint),
);
parentPort?.postMessage((await Promise.all(inspected)).map((body) => body.describeText()));
await inspector.close();

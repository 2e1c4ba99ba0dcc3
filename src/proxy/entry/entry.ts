/*
 * Who sends a request, and whether it may come in: the client by its key or token, the proxies that it passed, whether it
 * was here before, and which paths are only passed on.
 *
 * It never knows a replica.
 * Begin with api-clients.ts.
 */

export {
  type ApiClient,
  type ApiClientEntry,
  ApiClients,
  type ClientRefusal,
  mayUse,
} from './api-clients.ts';
export { createViaName, isLoop } from './loop-detection.ts';
export { PassedPaths } from './passed-paths.ts';
export { createTrustedProxies, type TrustedProxies } from './trusted-proxies.ts';

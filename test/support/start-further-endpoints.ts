import type { StartGatewayOptions } from './start-gateway.ts';
import { type Pair, startPair } from './start-pair.ts';

/** Starts a replica, and a gateway with `responses` and `messages`, for one test. */
export function startFurtherEndpoints(config: StartGatewayOptions['config'] = {}): Promise<Pair> {
  return startPair({}, { endpoints: ['responses', 'messages'], ...config });
}

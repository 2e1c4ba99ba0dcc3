import { useGatewayBundle } from './gateway-bundle.ts';

/** Vitest calls it once, before the processes of the tests start. */
export async function setup(): Promise<void> {
  await useGatewayBundle();
}

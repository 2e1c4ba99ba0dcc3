import { buildGatewayBundle } from './gateway-bundle.ts';

/**
 * Processes and threads of the gateway that tests start are those of the bundle. With GATEWAY_BUNDLE=off in the environment
 * they are those of the sources.
 */
export default async function setup(): Promise<void> {
  if (process.env.GATEWAY_BUNDLE === 'off') return;
  process.env.GATEWAY_BUNDLE = JSON.stringify(await buildGatewayBundle());
  const redirect = `--import=${new URL('redirect.js', import.meta.url).href}`;
  process.env.NODE_OPTIONS = [process.env.NODE_OPTIONS, redirect].filter(Boolean).join(' ');
}

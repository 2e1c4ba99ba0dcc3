import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../programs/results.ts';

/**
 * From now on, processes that this one starts, and threads of those, begin with the gateway's bundle (scripts/bundle/cached.ts)
 * where they would begin with its sources: a gateway listens after half the CPU time, one with two workers after a third.
 * With GATEWAY_BUNDLE=off in the environment they begin with the sources.
 */
export async function useGatewayBundle(): Promise<void> {
  if (process.env.GATEWAY_BUNDLE === 'off') return;
  const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, 'scripts/bundle/cached.ts')]);
  process.env.GATEWAY_BUNDLE = stdout.trim();
  const redirect = `--import=${new URL('redirect.js', import.meta.url).href}`;
  process.env.NODE_OPTIONS = [process.env.NODE_OPTIONS, redirect].filter(Boolean).join(' ');
}

import { HttpRequestInterceptor } from '@mswjs/interceptors/http';
import type { AnyHandler } from 'msw';
import { defineNetwork, InterceptorSource } from 'msw/experimental';

/**
 * Puts msw between this process and the network, for failures that no local server can produce. Requests without a
 * handler pass unchanged. Unlike msw's `setupServer` it intercepts undici and node:http. Disposing removes it.
 */
export async function interceptNetwork(...handlers: readonly AnyHandler[]): Promise<AsyncDisposable> {
  const network = defineNetwork({
    sources: [new InterceptorSource({ interceptors: [new HttpRequestInterceptor()] })],
    handlers: [...handlers],
    onUnhandledFrame: 'bypass',
    // msw prints every request it answers, with its body.
    context: { quiet: true },
  });
  await network.enable();
  return {
    async [Symbol.asyncDispose]() {
      await network.disable();
    },
  };
}

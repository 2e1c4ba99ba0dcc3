import type { RedisChannels } from '#fleet';
import type { ConfigInEffect } from './config-in-effect.ts';

/** Loads the channels of the fleet, once; null without a fleet. */
export type LoadChannels = () => Promise<RedisChannels | null>;

/** What loads the channels. The client of Redis comes with them: it takes 10 MB, and a third of a second of the start. */
export function createLoadChannels(inEffect: ConfigInEffect): LoadChannels {
  const load = async () => {
    const { prefix, redis } = inEffect.config.state;
    if (redis === null) return null;
    const { RedisChannels } = await import('#fleet');
    return new RedisChannels({ prefix, url: () => inEffect.config.state.redis ?? '' });
  };
  let loaded: ReturnType<LoadChannels> | null = null;
  return () => {
    loaded ??= load();
    return loaded;
  };
}

/** What opens the channel of a subject; null without a fleet. `onRefused`: the server does not permit it. */
export async function toFleetChannel(
  loadChannels: LoadChannels,
  subject: 'rollouts' | 'verdicts',
  onRefused: (reason: string) => void,
): Promise<((onMessage: (message: string) => void) => ReturnType<RedisChannels['open']>) | null> {
  const channels = await loadChannels();
  return channels && ((onMessage) => channels.open(subject, { onMessage, onRefused }));
}

import type { SimulatedThread } from '../../platform/thread.ts';
import { hostOf } from '../addresses.ts';

/** What a gateway that has closed has left open: a sentence; null if nothing. */
export function findLeftOpen(thread: SimulatedThread): string | null {
  const { network } = thread.machine;
  const connections = [...network.open]
    .filter(({ owner, isHandedOver, out }) => owner === thread && isHandedOver && !out.isEnding)
    // The deadline of a shutdown may leave a call to the collector behind, which ends with the process.
    .filter(({ remoteAddress }) => !remoteAddress.startsWith(hostOf.collector))
    .map(({ localAddress, remoteAddress }) => `${localAddress} to ${remoteAddress}`);
  const listeners = network.listening.filter(([, owner]) => owner === thread).map(([address]) => address);
  // A timer that ends on its own does no harm.
  const timers = [...thread.timers.pending].filter((timer) => timer.repeats && timer.hasRef());
  const found: readonly (readonly [what: string, names: readonly string[]])[] = [
    ['connections', connections],
    ['listeners', listeners],
    ['files', [...thread.openFiles.values()]],
    ['threads', [...thread.children].map(({ name }) => name)],
    ['timers', timers.map(({ delayMs }) => `${delayMs} ms`)],
  ];
  const left = found.filter(([, names]) => names.length > 0);
  if (left.length === 0) return null;
  return `${thread.name} leaves open: ${left.map(([what, names]) => `${what} ${names.join(', ')}`).join('; ')}`;
}

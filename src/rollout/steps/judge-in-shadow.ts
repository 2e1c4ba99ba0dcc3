import { setTimeout as sleep } from 'node:timers/promises';
import { itemsOf } from '#base/parsed';
import { RefusedError, UnreachableError } from '#cli/admin-client';
import { toOneLine } from '#cli/terminal';
import type { ComparisonEnd } from '../compare/compare-replica.ts';
import type { RollContext } from '../roll-context.ts';
import { RolloutStop } from '../stop.ts';

const LOOK_EVERY_MS = 1_000;
/** The gateways end a shadow that is not renewed for a minute. */
const RENEW_EVERY_MS = 15_000;

/** Another version of an engine may well give other outputs: alone, that stops no rollout. */
const TOLD_ONLY = 'outputs';

/**
 * Judges a restarted replica by copies of live requests while it is drained for clients. Whatever happens, it is no shadow in
 * the end. Throws a RolloutStop if the signal aborts or a gateway refuses.
 */
export async function judgeInShadow(
  name: string,
  share: string,
  { gateways, settings, reporter, signal, falseAlarm }: RollContext,
): Promise<ComparisonEnd> {
  const endMs = performance.now() + settings.compareMs;
  let renewedMs = Number.NEGATIVE_INFINITY;
  let end: ComparisonEnd = { kind: 'undecided', sentence: 'was not compared in the shadow', figures: {} };
  reporter.show(name, 'compare', `gets copies of ${share} of the requests, and no client`);
  try {
    while (performance.now() < endMs) {
      if (signal.aborted) throw new RolloutStop('interrupted', 'is drained; it was judged in the shadow');
      try {
        if (performance.now() - renewedMs >= RENEW_EVERY_MS) {
          await gateways.beginShadow(name, share);
          renewedMs = performance.now();
        }
        const { verdict, sentence, summary, figures, answer } = await gateways.judgeShadow(name, falseAlarm);
        end = { kind: verdict, sentence: toOneLine(`in the shadow ${sentence}`), figures };
        if (verdict === 'bad' && isToldOnly(answer)) return { ...end, kind: 'undecided' };
        if (verdict !== 'undecided') return end;
        reporter.show(name, 'compare', toOneLine(`is judged in the shadow: ${summary}`), figures);
      } catch (error) {
        if (error instanceof RefusedError) throw new RolloutStop('failed', toOneLine(error.reason));
        if (!(error instanceof UnreachableError)) throw error;
      }
      await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
    return end;
  } finally {
    await gateways.endShadow(name);
  }
}

function isToldOnly(answer: unknown): boolean {
  const reasons = itemsOf(answer, 'reasons');
  return reasons.length > 0 && reasons.every((reason) => reason === TOLD_ONLY);
}

import type { JwksSource } from '#access/jwt';
import type { Producer } from '#conditions';

/** Keys of tokens that cannot be read. */
export function createJwksProducer(source: Pick<JwksSource, 'problem'>): Producer {
  return () => {
    const { problem } = source;
    if (problem === null) return [];
    const effect = problem.hasKeys ? 'the former keys stay in use' : 'tokens get 503 until then';
    return [{ id: 'jwks_failing', subject: problem.source, figures: { reason: problem.text, effect } }];
  };
}

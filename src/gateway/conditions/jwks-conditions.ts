import type { JwksSource } from '#access/jwt';
import type { Producer } from '#conditions';

/** Keys of tokens that cannot be read. */
export function createJwksProducer(source: Pick<JwksSource, 'problem'>): Producer {
  return () => {
    const { problem } = source;
    if (problem === null) return [];
    const id = problem.hasKeys ? 'jwks_failing' : 'jwks_missing';
    return [{ id, subject: problem.source, figures: { reason: problem.text } }];
  };
}

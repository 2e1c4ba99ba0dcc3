import type { ClientsWatcher } from '#access/clients';
import type { JwksSource } from '#access/jwt';
import type { Finding, Producer } from '#conditions';

/** A file of clients that cannot be used. `path`: where it is; null where there is none. */
export function createClientsProducer(
  watcher: Pick<ClientsWatcher, 'problem'>,
  path: () => string | null,
): Producer {
  return function* (): Generator<Finding> {
    const subject = path();
    const reason = watcher.problem;
    if (subject !== null && reason !== null)
      yield { id: 'clients_file_unusable', subject, figures: { reason } };
  };
}

/** Keys of tokens that cannot be read. */
export function createJwksProducer(source: JwksSource): Producer {
  return () => {
    const { problem } = source;
    if (problem === null) return [];
    const id = problem.hasKeys ? 'jwks_failing' : 'jwks_missing';
    return [{ id, subject: problem.source, figures: { reason: problem.text } }];
  };
}

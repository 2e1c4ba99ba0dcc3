import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from '#testkit/certificates.ts';
import { startRawReplica } from '../../raw-replica.ts';
import { type Outcome, startAttackedGateway } from '../../run-attack.ts';
import { issueReplicaCertificates } from './issue-replica-certificates.ts';
import { speakTls, type TlsReplicaAttack } from './replica-attacks.ts';

/** A gateway in a process of its own, in front of a replica with https. */
export interface GatewayAttackedByReplica extends AsyncDisposable {
  run(attack: TlsReplicaAttack): Promise<Outcome>;
}

/** Starts it, with short time-outs. It knows the authority of the replica. */
export async function startAttackedByReplica(): Promise<GatewayAttackedByReplica> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'spangate-replica-attacks-')));
  const authority = stack.use(await createAuthority());
  const certificates = await issueReplicaCertificates(authority.ca, folder.path);
  const gateway = stack.use(
    await startAttackedGateway(() => startRawReplica('https', (tcp) => speakTls(tcp, certificates)), {
      ca: authority.ca.certPath,
    }),
  );
  const started = stack.move();
  return {
    run: (attack) => gateway.run({ ...attack, onConnection: (tcp) => attack.serve(tcp, certificates) }),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

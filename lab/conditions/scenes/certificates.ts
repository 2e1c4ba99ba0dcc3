import { execFileSync } from 'node:child_process';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Scene } from '../scene.ts';
import type { Stage } from '../stage.ts';

/** Writes a certificate that ends after so many days, or has ended that long ago, over that of the gateway. */
async function issue(stage: Stage, days: number): Promise<{ readonly cert: string; readonly key: string }> {
  const folder = await stage.folder('certificates');
  const files = { cert: join(folder, 'listen.pem'), key: join(folder, 'listen.key') };
  const ends = new Date(Date.now() + days * 86_400_000);
  const toText = (date: Date) => `${date.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`;
  const request = join(folder, 'request.pem');
  const run = (...args: readonly string[]) => execFileSync('openssl', args, { stdio: 'ignore', cwd: folder });
  run(
    ...['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=lab'],
    ...['-keyout', 'next.key', '-out', request],
  );
  // `openssl ca` alone lets a certificate end at any time.
  await writeFile(
    join(folder, 'ca.cnf'),
    '[ca]\ndefault_ca=lab\n[lab]\ndatabase=index\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\n' +
      'policy=any\nx509_extensions=names\n[any]\ncommonName=supplied\n[names]\nsubjectAltName=IP:127.0.0.1\n',
  );
  await writeFile(join(folder, 'index'), '');
  run(
    ...['ca', '-batch', '-selfsign', '-config', 'ca.cnf', '-in', request, '-keyfile', 'next.key', '-notext'],
    ...['-startdate', toText(new Date(Date.now() - 100 * 86_400_000)), '-enddate', toText(ends)],
    ...['-out', 'next.pem'],
  );
  await rename(join(folder, 'next.key'), files.key);
  await rename(join(folder, 'next.pem'), files.cert);
  return files;
}

/** A gateway whose certificate for clients ends so many days from now, and is then renewed. */
function endsIn(id: Scene['id'], days: number): Scene {
  return {
    id,
    subject: /listen/,
    async play(stage) {
      const tls = await issue(stage, 300);
      const gateway = await stage.gateway({ gateway: { tls } });
      return { gateway, bring: () => issue(stage, days), mend: () => issue(stage, 300) };
    },
  };
}

export const CERTIFICATE_SCENES: readonly Scene[] = [
  endsIn('certificate_ends_in_30_days', 20),
  endsIn('certificate_ends_in_7_days', 3),
  endsIn('certificate_ends_in_1_day', 0.5),
  endsIn('certificate_ended', -1),
  {
    id: 'certificate_unusable',
    subject: /./,
    async play(stage) {
      const tls = await issue(stage, 300);
      const gateway = await stage.gateway({ gateway: { tls } });
      const key = await readFile(tls.key);
      return {
        gateway,
        async bring() {
          await issue(stage, 300);
          await writeFile(tls.key, key);
        },
        mend: () => issue(stage, 300),
      };
    },
  },
];

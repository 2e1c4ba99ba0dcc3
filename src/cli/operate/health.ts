import { findClientListener, toReason } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import type { Invocation } from '#cli/command';
import { toOneLine } from '#cli/terminal';

const TIMEOUT_MS = 5_000;

/** `gateway health`: asks /healthz where the configuration says that clients are served. Returns 1 unless it is ok. */
export async function health({ args, env, stdout, stderr }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.health.options);
  const { baseUrl, fetch } = await findClientListener(values, env);
  const url = `${baseUrl}/healthz`;
  const init = {
    method: 'GET',
    headers: {},
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  } as const;
  let problem: string;
  try {
    const { ok, status } = await fetch(url, init);
    if (ok) {
      stdout.write('ok\n');
      return 0;
    }
    problem = `answered ${status}`;
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    problem = isLate
      ? `did not answer in ${TIMEOUT_MS / 1000} s`
      : `cannot be reached: ${toReason(error, url)}`;
  }
  stderr.write(`gateway: ${url} ${toOneLine(problem)}\n`);
  return 1;
}

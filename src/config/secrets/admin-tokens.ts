import { type Environment, type GivenSecret, readSecret, SecretError } from './read-secret.ts';

/** A shorter token can be guessed. */
const MIN_TOKEN_CHARS = 16;
/** Room for the tokens of a team while each of them rotates. */
const MAX_TOKENS_PER_FILE = 32;

/**
 * What a token of the admin API allows: every call; GETs, drains and undrains; GETs; to drain certain replicas. Strongest
 * role first.
 */
export const ADMIN_ROLES = ['admin', 'operator', 'reader', 'drainer'] as const;

/** One of ADMIN_ROLES. */
export type AdminRole = (typeof ADMIN_ROLES)[number];

/** A route needs no drainer: what those may call is decided by the route and the replica. */
const RANKS: Readonly<Record<AdminRole, number>> = { admin: 2, operator: 1, reader: 0, drainer: -1 };

/** The roles that a route can need. */
export type NeededRole = Exclude<AdminRole, 'drainer'>;

/** Whether a role allows what `needed` allows. */
export function allows(role: AdminRole, needed: NeededRole): boolean {
  return RANKS[role] >= RANKS[needed];
}

/** The variable that holds the tokens of each role. `_FILE` is the same in a file. */
export const TOKEN_VARIABLES = {
  admin: 'SVC_ADMIN_TOKEN',
  operator: 'SVC_OPERATOR_TOKEN',
  reader: 'SVC_READ_TOKEN',
  drainer: 'SVC_DRAIN_TOKEN',
} as const satisfies Record<AdminRole, string>;

/** A token of the admin API. `token` is secret; `name` is in log lines and spans. */
export interface AdminToken {
  readonly name: string;
  readonly role: AdminRole;
  readonly token: string;
  /** Of a drainer: the names of its replicas. A star at the end stands for any further characters. */
  readonly replicas?: readonly string[];
}

/** Whether a replica is one of a drainer's. */
export function isOwnReplica(name: string, { replicas = [] }: Pick<AdminToken, 'replicas'>): boolean {
  return replicas.some((own) => (own.endsWith('*') ? name.startsWith(own.slice(0, -1)) : name === own));
}

/** Tokens, and warnings for the operator who set them. Neither warnings nor errors contain a token. */
export interface GivenTokens {
  /** Strongest role first; within a role in the order of the file. */
  readonly tokens: readonly AdminToken[];
  readonly warnings: readonly string[];
}

/**
 * Reads the tokens of each role from its variable or file. A file may hold several, one per line, each with or without
 * a name before it (`alice: TOKEN`). The token of a drainer always has the names of its replicas before it, also in a
 * variable (`vllm-0,embed-*: TOKEN`). White space around a token is not part of it, because no header value can contain
 * it there. Rejects with a SecretError.
 */
export async function readAdminTokens(env: Environment): Promise<GivenTokens> {
  const given = await Promise.all(
    ADMIN_ROLES.map(async (role) => readTokens(role, await readSecret(TOKEN_VARIABLES[role], env))),
  );
  const placed = given.flatMap(({ placed }) => placed);
  refuseRepeated(placed);
  return {
    tokens: placed.map(({ place: _, ...token }) => token),
    warnings: given.flatMap(({ warnings }) => warnings),
  };
}

/** A token with the words for it in messages. */
interface PlacedToken extends AdminToken {
  readonly place: string;
}

function readTokens(
  role: AdminRole,
  { text, source, isFile }: GivenSecret,
): { readonly placed: readonly PlacedToken[]; readonly warnings: readonly string[] } {
  const lines = isFile ? text.split(/\r?\n/) : [text];
  const given = lines
    .map((line, index) => ({ line, place: lines.length === 1 ? source : `line ${index + 1} of ${source}` }))
    .filter(({ line }) => line.trim() !== '');
  if (given.length > MAX_TOKENS_PER_FILE) {
    throw new SecretError(`${source} holds more than ${MAX_TOKENS_PER_FILE} tokens`);
  }
  const placed = given.map(({ line, place }, index): PlacedToken => {
    const { name, token, replicas } =
      role === 'drainer' ? splitReplicas(line, place, index) : splitName(line, isFile);
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw new SecretError(
        `${place} can never match: it may contain only printable ASCII characters and no spaces`,
      );
    }
    const own = name ?? (index === 0 ? role : `${role}-${index + 1}`);
    return { name: own, role, token, place, ...(replicas === undefined ? {} : { replicas }) };
  });
  const spaced = given.filter(({ line }) => line !== line.trim());
  const short = placed.filter(({ token }) => token.length < MIN_TOKEN_CHARS);
  return {
    placed,
    warnings: [
      ...spaced.map(({ place }) => `${place} has white space around it, which is ignored`),
      ...short.map(({ place }) => `${place} has fewer than ${MIN_TOKEN_CHARS} characters: it can be guessed`),
    ],
  };
}

interface SplitLine {
  readonly name: string | null;
  readonly token: string;
  readonly replicas?: readonly string[];
}

/** The name of the token says what it drains. The line is part of it, so that an old and a new one differ. */
function splitReplicas(line: string, place: string, index: number): SplitLine {
  const [, scope = '', token = ''] = /^([A-Za-z0-9._~,*-]{1,1024}):[ \t]+(.*)$/.exec(line.trim()) ?? [];
  const replicas = scope.split(',');
  if (!replicas.every((name) => /^[A-Za-z0-9._~-]{1,128}\*?$/.test(name))) {
    throw new SecretError(
      `${place} must name its replicas before the token: vllm-0: TOKEN, or vllm-*: TOKEN`,
    );
  }
  const suffix = index === 0 ? '' : `-${index + 1}`;
  return { name: `drainer${suffix} of ${scope.slice(0, 64)}`, token, replicas };
}

/** A name ends with a colon and white space, which no token contains. */
function splitName(line: string, isFile: boolean): SplitLine {
  const [, name, token] = (isFile ? /^([A-Za-z0-9._~-]{1,64}):[ \t]+(.*)$/.exec(line.trim()) : null) ?? [];
  return name === undefined || token === undefined ? { name: null, token: line.trim() } : { name, token };
}

/** Equal tokens would have two roles, and equal names would hide who called. */
function refuseRepeated(placed: readonly PlacedToken[]): void {
  const byToken = new Map<string, PlacedToken>();
  const byName = new Map<string, PlacedToken>();
  for (const each of placed) {
    const same = byToken.get(each.token);
    if (same !== undefined) {
      throw new SecretError(
        `${same.place} and ${each.place} hold the same token: each token must be another one`,
      );
    }
    const namesake = byName.get(each.name);
    if (namesake !== undefined) {
      throw new SecretError(
        `${namesake.place} and ${each.place} have the same name: give one of them another`,
      );
    }
    byToken.set(each.token, each);
    byName.set(each.name, each);
  }
}

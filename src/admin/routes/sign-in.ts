import { z } from 'zod';
import { AdminError } from '../admin-error.ts';
import { defineRoute, json } from '../route.ts';

const linkSchema = z
  .object({
    code: z.string().describe('The address of the page, with `#sign-in=` and this behind it, is the link.'),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'SignInLink' });

const sessionSchema = z
  .object({
    token: z.string().describe('A bearer token. It ends with the gateway at the latest.'),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'Session' });

/** POST /admin/sign-in-links. */
export const createSignInLink = defineRoute({
  method: 'POST',
  path: '/admin/sign-in-links',
  operationId: 'createSignInLink',
  summary: 'Make a link that signs in to the page once',
  description:
    'Who opens the link may do what the token of this call allows, for twelve hours. The link can be opened once, within ' +
    'ten minutes. The code is behind the `#` of the address, which browsers do not send, so it is in no log.',
  role: 'reader',
  response: { description: 'The link.', content: json(linkSchema) },
  errors: ['token_required'],
  handle({ caller }, { signIns, log }) {
    if (caller === null || caller.via !== undefined) return new AdminError('token_required');
    const { secret, untilMs } = signIns.createLink(caller);
    log.info({ token_name: caller.name }, 'a link to sign in was made');
    return { body: { code: secret, expires_at: new Date(untilMs).toISOString() } };
  },
});

/** POST /admin/sign-in. */
export const signIn = defineRoute({
  method: 'POST',
  path: '/admin/sign-in',
  operationId: 'signIn',
  summary: 'Exchange the code of a link for a token',
  description: 'The code is the bearer token of this call, and of no other. It is good for one call.',
  role: 'reader',
  isForLinks: true,
  response: { description: 'The session is open.', content: json(sessionSchema) },
  handle({ caller }, { signIns, log }) {
    const session = caller === null ? null : signIns.open(caller);
    if (session === null) return new AdminError('unauthorized');
    log.info({ token_name: caller?.name ?? null }, 'signed in with a link');
    return { body: { token: session.secret, expires_at: new Date(session.untilMs).toISOString() } };
  },
});

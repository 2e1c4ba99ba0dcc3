import { AdminError } from '../admin-error.ts';
import { loadAssets } from '../dashboard/assets.ts';
import { bytes, defineRoute } from '../route.ts';

/**
 * Allows scripts and styles from this listener only, and none inline. Scripts cannot turn text into markup, no site can
 * frame the page, and no form can be sent. (Content Security Policy Level 3, Trusted Types)
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** They are a part of the program, as its modules are. */
const { page, files, version } = loadAssets();

/** GET /. */
export const showDashboard = defineRoute({
  method: 'GET',
  path: '/',
  operationId: 'showDashboard',
  summary: 'The dashboard: a page without data that asks for the token',
  isPage: true,
  response: { description: 'The page.', content: bytes(page.mediaType) },
  handle: () => ({
    body: page.body,
    headers: { 'Cache-Control': 'no-cache', 'Content-Security-Policy': CONTENT_SECURITY_POLICY },
  }),
});

/** GET /dashboard/{version}/{folder}/{file}. */
export const showDashboardFile = defineRoute({
  method: 'GET',
  path: '/dashboard/{version}/{folder}/{file}',
  operationId: 'showDashboardFile',
  summary: 'A file that the dashboard loads',
  isPage: true,
  response: { description: 'A script, a style or an image.', content: bytes('application/octet-stream') },
  errors: ['not_found'],
  handle({ params }) {
    const asset = params.version === version ? files.get(`${params.folder}/${params.file}`) : undefined;
    if (asset === undefined) return new AdminError('not_found');
    return {
      body: asset.body,
      headers: {
        'Content-Type': asset.mediaType,
        'Cache-Control': 'public, max-age=31536000, immutable',
      },
    };
  },
});

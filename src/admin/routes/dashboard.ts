import { AdminError } from '../admin-error.ts';
import { loadAssets } from '../dashboard/assets.ts';
import { bytes, defineRoute } from '../route.ts';

const assets = loadAssets();

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

const COMMON_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** GET /. */
export const showDashboard = defineRoute({
  method: 'GET',
  path: '/',
  operationId: 'showDashboard',
  summary: 'The dashboard: a page without data that asks for the token',
  isPage: true,
  response: { description: 'The page.', content: bytes(assets.page.mediaType) },
  handle: () => ({
    body: assets.page.body,
    headers: {
      ...COMMON_HEADERS,
      'Cache-Control': 'no-cache',
      'Content-Security-Policy': CONTENT_SECURITY_POLICY,
      'Cross-Origin-Opener-Policy': 'same-origin',
    },
  }),
});

/** GET /dashboard/{version}/{file}. */
export const showDashboardFile = defineRoute({
  method: 'GET',
  path: '/dashboard/{version}/{file}',
  operationId: 'showDashboardFile',
  summary: 'A file that the dashboard loads',
  isPage: true,
  response: { description: 'A script, a style or an image.', content: bytes('application/octet-stream') },
  errors: ['not_found'],
  handle({ params }) {
    const asset = params.version === assets.version ? assets.files.get(params.file) : undefined;
    if (asset === undefined) return new AdminError('not_found');
    return {
      body: asset.body,
      headers: {
        ...COMMON_HEADERS,
        'Content-Type': asset.mediaType,
        'Cache-Control': 'public, max-age=31536000, immutable',
      },
    };
  },
});

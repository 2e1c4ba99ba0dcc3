/**
 * The features of browsers that a page may ask for. The dashboard needs none of them. Chrome warns in its console of
 * features that it does not know, such as web-share.
 */
const FEATURES = [
  'accelerometer',
  'autoplay',
  'camera',
  'cross-origin-isolated',
  'display-capture',
  'encrypted-media',
  'fullscreen',
  'geolocation',
  'gyroscope',
  'keyboard-map',
  'magnetometer',
  'microphone',
  'midi',
  'payment',
  'picture-in-picture',
  'publickey-credentials-get',
  'screen-wake-lock',
  'sync-xhr',
  'usb',
  'xr-spatial-tracking',
];

/**
 * The headers of every response: what the OWASP Secure Headers Project recommends
 * (https://owasp.org/www-project-secure-headers/). A route may replace those that it needs otherwise.
 */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': FEATURES.map((feature) => `${feature}=()`).join(', '),
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-DNS-Prefetch-Control': 'off',
  'X-Frame-Options': 'DENY',
  'X-Permitted-Cross-Domain-Policies': 'none',
};

/** A year. Without subdomains: other servers may have them. (RFC 6797 6.1) */
const OVER_TLS = { ...SECURITY_HEADERS, 'Strict-Transport-Security': 'max-age=31536000' };

/** The headers of every response on a connection, with TLS or without. */
export function toSecurityHeaders(isTls: boolean): Readonly<Record<string, string>> {
  return isTls ? OVER_TLS : SECURITY_HEADERS;
}

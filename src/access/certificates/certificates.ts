/*
 * The certificates of the gateway: those of its listeners and of its replicas, read from files, watched, and told of
 * before they expire.
 *
 * It never knows who connects.
 * Begin with certificate-files.ts, then certificate-watcher.ts.
 */

export { type CertificateEnd, createCertificateLister } from './certificate-ends.ts';
export { type Certificates, createCertificateReader } from './certificate-files.ts';
export { CertificateWatcher } from './certificate-watcher.ts';
export { findExpiring } from './expiry.ts';

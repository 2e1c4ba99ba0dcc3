import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Copies into the chart what helm cannot read outside of it: the alerts and the dashboard, whose sources are in deploy/.
 */

const DEPLOY = join(import.meta.dirname, '../../deploy');
const FILES = join(DEPLOY, 'helm/spangate/files');

await mkdir(FILES, { recursive: true });
await copyFile(join(DEPLOY, 'alerts.yaml'), join(FILES, 'alerts.yaml'));
await copyFile(join(DEPLOY, 'grafana/dashboards/spangate.json'), join(FILES, 'dashboard.json'));

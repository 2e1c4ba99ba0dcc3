import type { Scene } from './scene.ts';
import { CERTIFICATE_SCENES } from './scenes/certificates.ts';
import { CONFIG_SCENES } from './scenes/config.ts';
import { DRAIN_SCENES } from './scenes/drains.ts';
import { EXPORT_SCENES } from './scenes/export.ts';
import { FILE_SCENES } from './scenes/files.ts';
import { FLEET_SCENES } from './scenes/fleet.ts';
import { LIMIT_SCENES } from './scenes/limits.ts';
import { MACHINE_SCENES } from './scenes/machine.ts';
import { REPLICA_SCENES } from './scenes/replicas.ts';
import { REQUEST_SCENES } from './scenes/requests.ts';
import { SOURCE_SCENES } from './scenes/sources.ts';

/** A scene for each condition, in the order of the registry's parts. */
export const SCENES: readonly Scene[] = [
  ...REPLICA_SCENES,
  ...REQUEST_SCENES,
  ...LIMIT_SCENES,
  ...CERTIFICATE_SCENES,
  ...FILE_SCENES,
  ...EXPORT_SCENES,
  ...SOURCE_SCENES,
  ...FLEET_SCENES,
  ...CONFIG_SCENES,
  ...DRAIN_SCENES,
  ...MACHINE_SCENES,
];

/*
 * The resource of all telemetry: version, lasting instance id, and what the variables of OpenTelemetry mean
 * here.
 *
 * It never knows a record.
 */

import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { type Log, toErrorCode } from '#otel/base';
import { isErrno, readRegularFile, writeDurably } from '#otel/files';

export { refuseConfigFile, warnOfVariables } from './environment.ts';

const SERVICE_NAME = 'service.name';
const SERVICE_VERSION = 'service.version';
const SERVICE_INSTANCE_ID = 'service.instance.id';

/** What a gateway knows of itself. Without a version or an id, the resource has none. */
interface ServiceFacts {
  /** Default: OTEL_SERVICE_NAME, else `spangate`. */
  readonly name?: string | undefined;
  readonly version?: string | undefined;
  /** The same as long as the gateway has the same state_dir. */
  readonly instanceId?: string | undefined;
}

/**
 * Creates the resource of this process, which all its workers share. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take
 * precedence over the version and the id.
 */
export function createResource({ name, version, instanceId }: ServiceFacts): Resource {
  const own = {
    [SERVICE_NAME]: 'spangate',
    ...(version === undefined ? {} : { [SERVICE_VERSION]: version }),
    ...(instanceId === undefined ? {} : { [SERVICE_INSTANCE_ID]: instanceId }),
  };
  const resource = defaultResource()
    .merge(resourceFromAttributes(own))
    .merge(detectResources({ detectors: [envDetector] }));
  return name === undefined ? resource : resource.merge(resourceFromAttributes({ [SERVICE_NAME]: name }));
}

/** Room for the id and white space that an editor added. */
const MAX_FILE_BYTES = 256;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * The `service.instance.id` of the gateway with this file: a random UUID (semantic conventions, "Service instance"), which
 * the first start writes and later ones read. A gateway alone uses its state_dir, so no two that run have the same id. A
 * file that cannot be used is a warning, and costs no more than that the id is a new one.
 */
export async function loadInstanceId(path: string, log: Log): Promise<string> {
  try {
    const known = await read(path);
    if (known !== null) return known;
    const created = randomUUID();
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeDurably(path, Buffer.from(`${created}\n`), '.tmp');
    return created;
  } catch (error) {
    log.warn(
      { reason: toErrorCode(error) },
      'service.instance.id is a new one: the file with it cannot be used',
    );
    return randomUUID();
  }
}

/** Null if there is no file, or none with an id. */
async function read(path: string): Promise<string | null> {
  try {
    const text = (await readRegularFile(path, MAX_FILE_BYTES)).toString('latin1').trim();
    return UUID.test(text) ? text : null;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    throw error;
  }
}

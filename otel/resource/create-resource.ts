import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';

const SERVICE_NAME = 'service.name';
const SERVICE_VERSION = 'service.version';
const SERVICE_INSTANCE_ID = 'service.instance.id';

/** What a gateway knows of itself. Without a version or an id, the resource has none. */
export interface ServiceFacts {
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

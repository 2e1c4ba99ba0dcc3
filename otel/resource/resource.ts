/*
 * The resource of all telemetry: version, lasting instance id, and what the variables of OpenTelemetry mean
 * here.
 *
 * It never knows a record.
 * Begin with create-resource.ts.
 */

export { createResource } from './create-resource.ts';
export { refuseConfigFile, warnOfVariables } from './environment.ts';
export { loadInstanceId } from './instance-id.ts';

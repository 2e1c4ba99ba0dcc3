import type { KubernetesObject } from './api.ts';

/** A condition of a pod's status. */
export interface PodCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
}

interface KeyReference {
  readonly name: string;
  readonly key: string;
}

/** A variable of a container. */
export interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef?: KeyReference };
}

/** A command that runs in the container. */
interface Hook {
  readonly exec?: { readonly command: readonly string[] };
}

/** A question of the kubelet. */
export interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string | number };
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold?: number;
}

/** What of a container the played kubelet reads. */
export interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly Variable[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly lifecycle?: { readonly preStop?: Hook; readonly postStart?: Hook };
  readonly readinessProbe?: Probe;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext?: { readonly readOnlyRootFilesystem?: boolean };
}

/** One source of a projected volume. */
export interface Projection {
  readonly serviceAccountToken?: { readonly path: string; readonly expirationSeconds: number };
  readonly configMap?: {
    readonly name: string;
    readonly items?: readonly { readonly key: string; readonly path: string }[];
  };
  readonly downwardAPI?: { readonly items: readonly { readonly path: string }[] };
}

/** A volume of a pod. */
export interface Volume {
  readonly name: string;
  readonly projected?: { readonly sources: readonly Projection[] };
  readonly configMap?: { readonly name: string };
  readonly secret?: { readonly secretName: string };
  readonly emptyDir?: object;
  readonly persistentVolumeClaim?: { readonly claimName: string };
}

/** A pod, as far as it is played. */
export interface Pod extends KubernetesObject {
  readonly spec: {
    readonly nodeName?: string;
    readonly serviceAccountName: string;
    readonly terminationGracePeriodSeconds: number;
    readonly readinessGates?: readonly { readonly conditionType: string }[];
    readonly containers: readonly [ContainerSpec, ...ContainerSpec[]];
    readonly volumes?: readonly Volume[];
  };
  readonly status: {
    readonly phase: string;
    readonly podIP?: string;
    readonly conditions?: readonly PodCondition[];
  };
}

/** The path of a pod in the API. */
export function toPodPath({ metadata: { namespace = 'default', name } }: Pick<Pod, 'metadata'>): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}

/** Whether a condition is true. */
export function isTrue({ status }: Pick<Pod, 'status'>, type: string): boolean {
  return (
    status.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false
  );
}

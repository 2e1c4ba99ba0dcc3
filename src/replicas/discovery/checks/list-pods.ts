import { type ApiFailureCode, toApiError } from '../kubernetes/api-call.ts';
import { toReadyEndpoints } from '../kubernetes/ready-endpoints.ts';
import { createSliceApi } from '../kubernetes/slice-api.ts';
import type { Endpoint } from '../resolver.ts';
import type { KubernetesSource } from '../servers.ts';

/** The pods that would be replicas; if there are none, `result` and `advice` say why. */
export interface ListedPods {
  readonly endpoints: readonly Endpoint[];
  /** What was asked. */
  readonly target: string;
  readonly result: string;
  readonly advice: string;
}

/** Reads the EndpointSlices of a Service once. Never rejects. */
export async function listPods(source: KubernetesSource): Promise<ListedPods> {
  const { apiServer, service } = source;
  const target = `${apiServer}, Service ${service}`;
  try {
    const { slices } = await createSliceApi(source).list(new AbortController().signal);
    const { endpoints, isPortMissing } = toReadyEndpoints(slices, source);
    const advice = isPortMissing
      ? 'its pods have no such port, or several: set port or port_name to one of them'
      : slices.length === 0
        ? 'it has no EndpointSlices: correct service and namespace'
        : 'none of its pods is ready: look at the pods';
    return { endpoints, target, result: 'no_pods', advice };
  } catch (error) {
    const { code, status, reason } = toApiError(error);
    const detail = status === null ? reason : `status ${status}`;
    const result = detail === null ? code : `${code} (${detail})`;
    return { endpoints: [], target, result, advice: adviceOf(code, reason) };
  }
}

function adviceOf(code: ApiFailureCode, reason: string | null): string {
  if (code !== 'unreachable' || reason === null) return ADVICE[code];
  if (reason === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return 'its certificate is for other names: set api_server to one of them';
  return CERTIFICATE_PROBLEM.test(reason)
    ? 'check ca_file: it must have the authority of its certificate'
    : ADVICE[code];
}

/** Codes of OpenSSL that say that a certificate is not trusted. */
const CERTIFICATE_PROBLEM = /CERT|SIGNATURE/;

const ADVICE: Readonly<Record<ApiFailureCode, string>> = {
  no_service_account:
    'token_file, ca_file or the file namespace cannot be used: mount the token of the service account',
  unreachable: 'check api_server, its certificate and the network policy',
  refused: 'its service account may not list endpointslices in this namespace: give it the Role',
  gone: 'try again',
  bad_status: 'check that api_server is the URL of a Kubernetes API server',
  malformed_answer: 'check that api_server is the URL of a Kubernetes API server',
  answer_too_large: 'check that api_server is the URL of a Kubernetes API server',
  cut: 'try again, and look at the network',
};

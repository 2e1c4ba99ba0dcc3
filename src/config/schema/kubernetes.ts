import { baseUrl } from './addresses.ts';
import { flagOrText, oneOf, text, wholeNumber } from './codecs.ts';
import { section } from './keys.ts';
import { path } from './names.ts';

const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/; // RFC 1123, as Kubernetes wants it
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

const dnsLabel = (title: string) => text(title, DNS_LABEL);

/** A condition of a pod with a prefix, so that it is none of Kubernetes' own: 63 characters behind a DNS name. */
const CONDITION_TYPE =
  /^(?=[^/]{1,253}\/)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*\/[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/;

/** The condition that `readiness_gate: true` means. */
const ANSWERS = 'spangate.dev/answers';

/** A Service of Kubernetes whose pods are replicas. */
export const kubernetesSource = section({
  service: dnsLabel('the name of a Service').describe('The Service.'),
  namespace: dnsLabel('the name of a namespace')
    .optional()
    .describe('Its namespace. Default: the one in the file `namespace` beside `token_file`.'),
  port: wholeNumber(1, 65_535)
    .optional()
    .describe('The port of the pods. Default: the only port of the Service.'),
  port_name: dnsLabel('the name of a port')
    .optional()
    .describe('Instead of `port`: its name in the Service.'),
  scheme: oneOf(['http', 'https']).prefault('http').describe('How to reach the pods.'),
  readiness_gate: flagOrText({
    title: 'true, false, or the type of a condition such as spangate.dev/answers',
    pattern: CONDITION_TYPE.source,
    parse: (given) => (CONDITION_TYPE.test(given) ? given : null),
    meaningOfTrue: ANSWERS,
  })
    .prefault(false)
    .describe(
      `Set each pod's condition \`${ANSWERS}\`, or the one named, to true once the pod has answered with its models, for \`readinessGates\`. Needs the right to patch pods/status: see kubernetes.md.`,
    ),
  address_type: oneOf(['auto', 'IPv4', 'IPv6'])
    .prefault('auto')
    .describe('Which address of a pod to use. `auto`: IPv4 if it has one.'),
  api_server: baseUrl('put the token into token_file')
    .prefault('https://kubernetes.default.svc')
    .describe('The API server. The token is sent over https:// only.'),
  token_file: path()
    .prefault(`${ACCOUNT}/token`)
    .describe('The token of the service account, read again for each call.'),
  ca_file: path().prefault(`${ACCOUNT}/ca.crt`).describe('The authorities of the API server.'),
});

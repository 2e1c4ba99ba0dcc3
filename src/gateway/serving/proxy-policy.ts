import type { Config } from '#config';
import { endpointsByPath, type ProxyPolicy } from '#proxy';
import { createTrustedProxies, PassedPaths } from '#proxy/entry';

type ProxySettings = ProxyPolicy['settings'];

/** Who may send requests, and what tenants may use. */
type Access = Pick<ProxySettings, 'apiClients' | 'tenantLimits'>;

/** What is believed of who sends a request, and told them. */
type Trust = Pick<ProxySettings, 'continuesTraces' | 'tellsRoute'> & { readonly trustsTenant: boolean };

/**
 * The settings of the proxy, and those for requests of `trusted_proxies`: who is believed what it says of a tenant, whose trace
 * goes on here, and who is told the route. `viaName`: the gateway's name in Via.
 */
export function toProxyPolicy(config: Config, access: Access, viaName: string): ProxyPolicy {
  const { apiClients } = access;
  const { trustedProxies } = config.gateway;
  const isContinuing = config.trace.incoming === 'continue';
  const settings = toProxySettings(config, access, viaName, {
    trustsTenant: apiClients === null,
    continuesTraces: isContinuing && trustedProxies === null,
    tellsRoute: false,
  });
  const tellsRoute = config.routing.tell === 'trusted';
  const isSame = apiClients === null && !isContinuing && !tellsRoute;
  if (trustedProxies === null || isSame) return { settings, trusted: null };
  return {
    settings,
    trusted: {
      proxies: createTrustedProxies(trustedProxies),
      settings: toProxySettings(config, access, viaName, {
        trustsTenant: true,
        continuesTraces: isContinuing,
        tellsRoute,
      }),
    },
  };
}

function toProxySettings(
  { aliases, currency, endpoints, gateway, headers, limits, log, modelsListing, pass, ...config }: Config,
  { apiClients, tenantLimits }: Access,
  viaName: string,
  { trustsTenant, continuesTraces, tellsRoute }: Trust,
): ProxySettings {
  const { history, prefixHash, progressiveUsage, retry, timeouts } = config;
  const keyFields = ['authorization', 'x-api-key'];
  const tenant = headers.tenant.toLowerCase();
  return {
    viaName,
    endpoints: endpointsByPath(endpoints),
    recordedFields: {
      tenant,
      feature: headers.feature.toLowerCase(),
      conversation: headers.conversation.toLowerCase(),
      names: toNameHeaders(headers),
      trustsTenant,
      needsClient: apiClients !== null,
      clientSubject: gateway.tls?.recordSubject === true,
      currency,
    },
    continuesTraces,
    tellsRoute,
    apiClients,
    tenantLimits,
    withheldFields: apiClients === null ? null : new Set(trustsTenant ? keyFields : [...keyFields, tenant]),
    passes: new PassedPaths(pass),
    aliases: Object.keys(aliases).length === 0 ? null : new Map(Object.entries(aliases)),
    listsAllModels: modelsListing === 'union',
    tellsUsage: history?.clientUsage === true && apiClients !== null,
    retry:
      retry.statuses.length === 0 ? null : { statuses: new Set(retry.statuses), attempts: retry.attempts },
    isDebug: log.level === 'debug',
    maxBodyBytes: limits.bodyBytes,
    maxBeforeModelBytes: limits.beforeModelBytes,
    maxEventBytes: limits.eventBytes,
    prefixBlockChars: prefixHash.blockChars,
    asksRunningUsage: progressiveUsage,
    clientBodyMs: timeouts.clientBodyMs,
    firstByteMs: timeouts.firstByteMs,
    idleMs: timeouts.idleMs,
    silentMs: timeouts.silentMs ?? timeouts.idleMs,
    queueMs: timeouts.queueMs,
  };
}

/** The headers that name who and what a request is for, in lower case; null: none does. */
function toNameHeaders({ user, session, agent, prompt, promptVersion }: Config['headers']) {
  const headers = { user, session, agent, prompt, promptVersion };
  const named = Object.entries(headers).filter(
    (entry): entry is [keyof typeof headers, string] => entry[1] !== null,
  );
  return named.length === 0 ? null : named.map(([name, header]) => ({ name, header: header.toLowerCase() }));
}

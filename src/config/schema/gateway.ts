import { listenAddress, network } from './addresses.ts';
import { flag, listOf, text, wholeNumberOrAuto } from './codecs.ts';
import { facts, RELOADED, section } from './keys.ts';
import { plainName } from './names.ts';
import { listenerTls } from './tls.ts';

const ADMIN_HOST = /^(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?$/;
const hostTitle = 'a host name without a port, such as gateway.example.com or *.example.com';

/** `gateway`: the listeners and the threads behind them. */
export const gateway = section({
  name: plainName()
    .optional()
    .describe('Its name among gateways that share state. Default: the name of the machine.'),
  listen: listenAddress().prefault('0.0.0.0:8080').describe('Where clients connect.'),
  admin_listen: listenAddress().prefault('127.0.0.1:9090').describe('Where the admin API listens.'),
  admin_hosts: listOf(
    text(hostTitle, ADMIN_HOST),
    'a list of host names without ports, such as gateway.example.com or *.example.com',
  )
    .optional()
    .describe(
      'The host names that the admin API answers to, besides IP addresses and localhost; any other gets 421. Default: none if `admin_listen` is a loopback address, else any.',
    )
    .register(facts, RELOADED),
  trusted_proxies: listOf(network(), 'a list of IP addresses and networks, such as 10.0.0.7 and 10.0.0.0/8')
    .optional()
    .describe('Proxies in front of the gateway that may name the tenant: see api-keys.md.')
    .register(facts, RELOADED),
  workers: wholeNumberOrAuto(1, 256)
    .prefault(1)
    .describe('How many threads serve clients. `auto`: one per core.'),
  tls: section({
    ...listenerTls,
    record_subject: flag()
      .prefault(false)
      .describe("Record the subject of the client's certificate as `gateway.client_subject`."),
  })
    .optional()
    .describe('TLS for clients. Without this section, connections are not encrypted.'),
  admin_tls: section(listenerTls).optional().describe('TLS for the admin API and the dashboard.'),
});

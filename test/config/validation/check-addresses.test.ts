// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the file's variables, not JavaScript's.
import { hostname, networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';

import { problemsOf, REPLICA } from './problems-of.ts';

describe('addresses that cannot work together', () => {
  const own = (listen: string, adminListen: string) =>
    problemsOf(`${REPLICA}gateway: { listen: "${listen}", admin_listen: "${adminListen}" }\n`);

  it.each([
    ['127.0.0.1:8080', '127.0.0.1:8080'],
    ['0.0.0.0:8080', '127.0.0.1:8080'],
    [':8080', 'localhost:8080'],
    ['127.0.0.1:8080', '[::]:8080'],
    ['[::]:8080', '0.0.0.0:8080'],
    ['[::1]:8080', '[::1]:8080'],
    ['gateway:8080', 'GATEWAY.:8080'],
  ])('listen %s and admin_listen %s are refused', (listen, adminListen) => {
    const problem = `is also the address of gateway.listen, ${listen.replace(/^:/, '0.0.0.0:')}: give the admin API another port`;
    expect(own(listen, adminListen)).toEqual([`2: gateway.admin_listen: ${adminListen} ${problem}`]);
  });

  it.each([
    ['127.0.0.1:8080', '127.0.0.1:8081'],
    ['127.0.0.1:0', '127.0.0.1:0'],
    ['127.0.0.1:8080', '127.0.0.2:8080'],
    ['0.0.0.0:8080', '[::1]:8080'],
    ['localhost:8080', '[::1]:8080'],
  ])('listen %s and admin_listen %s are not', (listen, adminListen) => {
    expect(own(listen, adminListen)).toEqual([]);
  });

  it('listen on the default of admin_listen is refused', () => {
    expect(problemsOf(`${REPLICA}gateway:\n  listen: :9090\n`)).toEqual([
      '2: gateway.admin_listen: 127.0.0.1:9090 is also the address of gateway.listen, 0.0.0.0:9090: give the admin API another port',
    ]);
  });

  it('two names for one server are refused, however its address is written', () => {
    const urls = [
      'http://h:80/',
      'http://H',
      'http://h./',
      'https://h:80',
      'http://h/team',
      'http://127.0.0.1:1',
    ];
    const names = [...urls, 'http://localhost:1//'].map((url, i) => `- { name: r${i}, url: "${url}" }`);
    const services = ['- { name: s, dns: "http://h" }', '- { name: t, dns: "http://h/" }'];
    const same = (path: string) =>
      `it is the same server as ${path}; expected one name per server: a drain applies to a name`;
    expect(problemsOf(`replicas:\n${[...names, ...services].join('\n')}`)).toEqual([
      `3: replicas[1].url: ${same('replicas[0].url')}`,
      `4: replicas[2].url: ${same('replicas[0].url')}`,
      `8: replicas[6].url: ${same('replicas[5].url')}`,
      `10: replicas[8].dns: ${same('replicas[7].dns')}`,
    ]);
  });

  const anyAddress = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

  it.each([
    ['0.0.0.0:8080', 'http://127.0.0.1:8080', 'listen'],
    ['0.0.0.0:8080', 'http://localhost:8080/v2', 'listen'],
    ['0.0.0.0:8080', `http://${hostname()}:8080`, 'listen'],
    ['0.0.0.0:8080', `http://${anyAddress ?? '127.0.0.2'}:8080`, 'listen'],
    ['0.0.0.0:80', 'http://127.0.0.1', 'listen'],
    ['[::]:8080', 'http://[::1]:8080', 'listen'],
    ['127.0.0.1:8080', 'http://0.0.0.0:8080', 'listen'],
    ['gw.test:8080', 'http://GW.test:8080', 'listen'],
    ['0.0.0.0:8080', 'http://localhost:9090', 'admin_listen'],
  ])('with listen %s, a replica at %s is the gateway itself', (listen, url, key) => {
    const text = `gateway: { listen: "${listen}" }\nreplicas:\n- { name: a, url: "${url}" }\n`;
    expect(problemsOf(text)).toEqual([
      expect.stringMatching(
        `^3: replicas\\[0\\].url: found .*, expected the URL of an inference server, not gateway.${key} of this gateway$`,
      ),
    ]);
  });

  it.each([
    ['127.0.0.1:8080', 'http://127.0.0.2:8080'],
    ['127.0.0.1:8080', 'http://127.0.0.1:8081'],
    ['127.0.0.1:0', 'http://127.0.0.1:8081'],
    ['0.0.0.0:8080', 'http://192.0.2.1:8080'],
    ['0.0.0.0:8080', 'http://elsewhere.test:8080'],
    ['0.0.0.0:8080', 'http://[::1]:8080'],
  ])('with listen %s, a replica at %s is another server', (listen, url) => {
    const text = `gateway: { listen: "${listen}" }\nreplicas:\n- { name: a, url: "${url}" }\n`;
    expect(problemsOf(text)).toEqual([]);
  });

  it('a collector that is the gateway itself is refused', () => {
    expect(problemsOf(`${REPLICA}export: { endpoint: "http://localhost:8080/v1/traces" }\n`)).toEqual([
      '2: export.endpoint: found "http://localhost:8080/v1/traces", expected the URL of a collector, not gateway.listen of this gateway',
    ]);
  });
});

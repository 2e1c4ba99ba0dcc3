/** Requests as clients send them: curl, the OpenAI libraries, Go, browsers, benchmarks. */
export const REAL_REQUESTS: readonly string[] = [
  'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n' +
    'Content-Type: application/json\r\nContent-Length: 13\r\n\r\n{"model":"m"}',
  'POST /v1/chat/completions HTTP/1.1\r\nHost: gateway.example\r\nAccept-Encoding: gzip, deflate\r\n' +
    'Connection: keep-alive\r\nAccept: application/json\r\nContent-Type: application/json\r\n' +
    'User-Agent: OpenAI/Python 2.6.1\r\nX-Stainless-Lang: python\r\nX-Stainless-Package-Version: 2.6.1\r\n' +
    'X-Stainless-OS: Linux\r\nX-Stainless-Arch: x64\r\nX-Stainless-Runtime: CPython\r\n' +
    'X-Stainless-Runtime-Version: 3.12.3\r\nAuthorization: Bearer sk-none\r\nX-Stainless-Async: false\r\n' +
    'x-stainless-retry-count: 0\r\nx-stainless-read-timeout: 600\r\nContent-Length: 26\r\n\r\n' +
    '{"model":"m","stream":true',
  'POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: Go-http-client/1.1\r\n' +
    'Transfer-Encoding: chunked\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n' +
    'd\r\n{"model":"m",\r\nb\r\n"input":""}\r\n0\r\n\r\n',
  'POST /v1/completions HTTP/1.1\r\nhost: [::1]:8080\r\nconnection: keep-alive\r\naccept: */*\r\n' +
    'accept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\naccept-encoding: br, gzip, deflate\r\n' +
    'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=b\r\n' +
    'x-request-id: 7d0c\r\ncontent-length: 2\r\n\r\n{}',
  'GET /v1/models HTTP/1.1\r\nHost: gateway\r\nAccept: application/json\r\nCookie: a=b; c="d"\r\n' +
    'Accept-Language: de-DE,de;q=0.9\r\nReferer: http://gateway/\r\nCache-Control: no-cache\r\n\r\n',
  'GET /healthz HTTP/1.0\r\nUser-Agent: ApacheBench/2.3\r\nConnection: Keep-Alive\r\nHost: gateway\r\n\r\n',
  'POST /v1/chat/completions?api-version=2024-10-21 HTTP/1.1\r\nHost: gateway\r\nExpect: 100-continue\r\n' +
    'Connection: close, TE\r\nTE: trailers\r\nTrailer: X-Checksum\r\nTransfer-Encoding: chunked\r\n\r\n' +
    '4;sig=0f\r\nabcd\r\n0\r\nX-Checksum: 1f\r\n\r\n',
  'GET /chat HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n',
];

/** Responses as engines, and proxies before them, send them. */
export const REAL_RESPONSES: readonly string[] = [
  'HTTP/1.1 200 OK\r\ndate: Sat, 21 Nov 2026 06:28:44 GMT\r\nserver: uvicorn\r\n' +
    'content-type: text/event-stream; charset=utf-8\r\nvary: Origin\r\ntransfer-encoding: chunked\r\n\r\n' +
    'c\r\ndata: {"a":1\r\n3\r\n}\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nAccess-Control-Allow-Origin: \r\nX-Accel-Buffering: no\r\n' +
    'Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\n' +
    'e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n',
  'HTTP/1.1 404 Not Found\r\ndate: Sat, 21 Nov 2026 06:29:03 GMT\r\nserver: uvicorn\r\ncontent-length: 22\r\n' +
    'content-type: application/json\r\nvary: Origin\r\n\r\n{"detail":"Not Found"}',
  'HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n' +
    'Connection: close\r\nRetry-After: 1\r\n\r\n{}',
  'HTTP/1.0 200 OK\r\nServer: BaseHTTP/0.6 Python/3.12.3\r\nDate: Sat, 21 Nov 2026 06:29:03 GMT\r\n\r\nhello',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 5\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nabc',
  'HTTP/1.1 200\r\nContent-Type: text/plain\r\nContent-Length: 0\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n\r\n',
];

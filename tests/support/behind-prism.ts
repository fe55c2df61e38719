import { request as httpRequest } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { OpenApiDocument, Operation } from '@interlude/protocol/open-api';
import { findRoute } from '@/lib/server/handle-route';
import type { Route } from '@/lib/server/routes';
import { FrameReader } from './frames';
import { startPrism } from './prism.mjs';
import { serveOverHttp } from './serve-over-http';
import { inProcessServer, type ServerTarget } from './server-target';

/** A server behind Prism, which validates requests and responses against the server's OpenAPI document. */
interface ServerBehindPrism extends ServerTarget {
  /** Validated response statuses by operation (`GET /api/v1/sessions/:sessionId`). */
  readonly validated: ReadonlyMap<string, ReadonlySet<number>>;
  /** Returns and clears the response violations, each with its request. */
  takeViolations(): string[];
  /** True if Prism forwards the operation unchanged. */
  passes(route: Route): boolean;
  /** Requests an operation through Prism with `answer` as the server's response. */
  askFor(route: Route, response: Response): Promise<void>;
}

/** Prism's body limit. */
const MAX_BODY_BYTES = 10_000_000;

/** Operations that Prism would alter. Their requests bypass Prism. */
const CHANGED_OPERATIONS: readonly ((route: Route, operation: Operation) => boolean)[] = [
  // Prism parses the empty body of a HEAD response as JSON and answers 500.
  ({ method }) => method === 'HEAD',
  // Prism buffers the whole body; a stream never ends.
  (_, operation) => answersWith(operation, 'text/event-stream'),
  // Prism decodes every body as text.
  (_, operation) => answersWith(operation, '*/*'),
  // Prism follows redirects.
  (_, { responses }) => Object.keys(responses).some((status) => status.startsWith('3')),
];

/** Requests that Prism would alter. They bypass Prism. */
const CHANGED_REQUESTS: readonly ((request: Request, body: Uint8Array) => boolean)[] = [
  // Prism replaces Host with that of the upstream.
  ({ url, headers }) => new URL(`http://${headers.get('host')}`).hostname !== new URL(url).hostname,
  // Prism re-encodes the query, which repairs broken escapes.
  ({ url }) => !isDecodable(new URL(url).search),
  // Prism adds a missing content type.
  ({ headers }, body) => body.length > 0 && !headers.has('content-type'),
  // Prism reserializes JSON and decodes other bodies as text.
  ({ headers }, body) => headers.has('content-encoding') || !isKept(body, headers.get('content-type') ?? ''),
];

/** @param settings additional environment variables */
export async function serverBehindPrism(settings: Record<string, string> = {}): Promise<ServerBehindPrism> {
  const server = await inProcessServer(undefined, settings);
  const document = (await (await server.get('/api/v1/openapi.json')).json()) as OpenApiDocument;
  let nextAnswer: Response | null = null;
  const upstream = await serveOverHttp({
    origin: server.origin,
    fetch: async (request) => nextAnswer ?? server.fetch(request),
  });
  const prism = await startPrism(document, upstream.url);
  const validated = new Map<string, Set<number>>();
  const readers: FrameReader[] = [];
  let violations: string[] = [];

  const passes = (route: Route) => {
    const operation = operationOf(document, route);
    return !CHANGED_OPERATIONS.some((isChanged) => isChanged(route, operation));
  };

  async function fetchThroughPrism(request: Request): Promise<Response> {
    const found = findRoute(request.method, new URL(request.url).pathname);
    // the document doesn't cover any other path or method
    if (found.kind !== 'route' || !passes(found.route)) return server.fetch(request);
    const body = new Uint8Array(await request.clone().arrayBuffer());
    if (CHANGED_REQUESTS.some((isChanged) => isChanged(request, body))) return server.fetch(request);
    return validate(request, body, found.route);
  }

  async function validate(request: Request, body: Uint8Array, { method, pattern }: Route): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const response = await sendTo(`${prism.url}${pathname}${search}`, request, body);
    const { status, headers } = response;
    const target = `${method} ${pathname}${search}`;
    if (headers.get('content-type') === 'application/problem+json') {
      throw new Error(`Prism could not forward ${target}: ${await response.text()}`);
    }
    violations.push(...ofAnswer(headers.get('sl-violations') ?? '').map((what) => `${target} → ${status}: ${what}`));
    headers.delete('sl-violations');
    const name = `${method} ${pattern}`;
    validated.set(name, (validated.get(name) ?? new Set()).add(status));
    return response;
  }

  const target: ServerBehindPrism = {
    origin: server.origin,
    token: server.token,
    validated,
    passes,
    dump: server.dump,
    fetch: fetchThroughPrism,
    send: (path, { method = 'GET', headers = {}, body } = {}) => {
      const all = { host: new URL(server.origin).host, ...headers };
      return fetchThroughPrism(new Request(`${server.origin}${path}`, { method, headers: all, body }));
    },
    get: (path, headers = {}) =>
      target.send(path, { headers: { authorization: `Bearer ${server.token}`, ...headers } }),
    stream: async (query, headers) => {
      const response = await target.get(`/api/v1/stream?${query}`, headers);
      if (response.status !== 200 || response.body === null) throw new Error(await response.text());
      const reader = new FrameReader(response.body);
      readers.push(reader);
      return reader;
    },
    takeViolations: () => {
      const found = violations;
      violations = [];
      return found;
    },
    askFor: async (route, response) => {
      nextAnswer = response;
      const path = route.pattern.replace(/:\w+/g, 'some-id');
      await validate(new Request(`${server.origin}${path}`, { method: route.method }), new Uint8Array(), route);
      nextAnswer = null;
    },
    close: async () => {
      await Promise.all(readers.map((reader) => reader.cancel().catch(() => {})));
      await prism.stop();
      await upstream.close();
      await server.close();
    },
  };
  return target;
}

function operationOf(document: OpenApiDocument, { method, pattern }: Route): Operation {
  const operation = document.paths[pattern.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()];
  if (operation === undefined) throw new Error(`the document has no ${method} ${pattern}`);
  return operation;
}

function answersWith({ responses }: Operation, mediaType: string): boolean {
  return Object.values(responses).some(({ content = {} }) => Object.hasOwn(content, mediaType));
}

function isDecodable(search: string): boolean {
  try {
    decodeURIComponent(search);
    return true;
  } catch {
    return false;
  }
}

/** True if Prism forwards the body byte for byte. */
function isKept(body: Uint8Array, contentType: string): boolean {
  if (body.length === 0) return true;
  if (body.length > MAX_BODY_BYTES) return false;
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    if (!/^application\/([\w.-]+\+)?json\b/i.test(contentType)) return !text.startsWith('\ufeff');
    const value: unknown = JSON.parse(text);
    // Prism drops values such as 0 and null
    return typeof value === 'object' && value !== null && JSON.stringify(value) === text;
  } catch {
    return false;
  }
}

/** Sends with an explicit length and headers that `fetch` forbids. Doesn't follow redirects. */
function sendTo(url: string, { method, headers }: Request, body: Uint8Array): Promise<Response> {
  return new Promise((resolve, reject) => {
    const length = body.length === 0 ? {} : { 'content-length': String(body.length) };
    const all = { ...Object.fromEntries(headers), ...length };
    const sent = httpRequest(url, { method, headers: all, agent: false }, async (response) => {
      const pairs = Object.entries(response.headersDistinct).flatMap(([name, values]) =>
        (values ?? []).map((value): [string, string] => [name, value]),
      );
      const status = response.statusCode ?? 0;
      const content = await buffer(response);
      resolve(
        new Response(status === 204 || status === 304 ? null : new Uint8Array(content), { status, headers: pairs }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** @param violations a JSON list; Prism truncates a long one and prefixes it */
function ofAnswer(violations: string): string[] {
  if (!violations.includes('"location":["response"')) return [];
  if (!violations.startsWith('[')) return [violations];
  const all: { location: string[]; message: string }[] = JSON.parse(violations);
  return all
    .filter(({ location }) => location[0] === 'response')
    .map(({ location, message }) => `${location.join('.')} ${message}`);
}

import { gzipSync } from 'node:zlib';
import type { JsonSchema, OpenApiDocument, Operation } from '@interlude/protocol/open-api';
import { ROLES, type Role } from '@interlude/protocol/scope';
import fc from 'fast-check';
import type { BusyAgent } from './busy-agent';

/** A request as sent on the wire. */
export interface WireRequest {
  method: string;
  /** Path with query, percent-encoded correctly or not. */
  path: string;
  /** Credential: of a role, none, or unknown. */
  sender: Role | 'nobody' | 'unknown';
  /** Latin-1 values, without `authorization`. */
  headers: Record<string, string>;
  body: Uint8Array | null;
}

/** A valid request, mutated in place. */
interface Draft {
  method: string;
  segments: string[];
  query: [name: string, value: string][];
  sender: WireRequest['sender'];
  headers: Record<string, string>;
  body: unknown;
  /** Transformations of the encoded body, in order. */
  encodings: ((bytes: Buffer) => Buffer)[];
}

type Mutation = (draft: Draft) => void;

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** A fixed set. Random ids would add an agent or session each and grow every list. */
const TEXTS = [
  '',
  ' ',
  '.',
  '..',
  '../../etc/passwd',
  '/',
  '%',
  '%00',
  '\\',
  "'; DROP TABLE events; --",
  '" OR 1=1',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'null',
  'undefined',
  'true',
  'NaN',
  '-1',
  '0',
  '1e400',
  '9007199254740993',
  '-0',
  '0x10',
  '\u0000',
  'a\u0000b',
  '\ud800',
  'a\udc00b',
  '\ufeff',
  '\u202eexe',
  '\u0130\u0131',
  '👩‍👩‍👧‍👦',
  '<img src=x onerror=alert(1)>',
  '{{7*7}}',
  '#{7*7}',
  '\r\nX-Injected: 1',
  '(a+)+$',
  '(?<=a)b\\1',
  '[',
  '%'.repeat(50),
  '_'.repeat(201),
  'x'.repeat(257),
  'x'.repeat(5_000),
  'javascript:alert(1)',
  '//evil.example',
  'il_wrong',
  'ile_wrong',
  'session:',
  'logs:__proto__',
];

const NUMBERS = [
  0,
  -0,
  -1,
  1,
  1.5,
  1e21,
  1e300,
  -1e300,
  5e-324,
  2 ** 31,
  2 ** 32,
  2 ** 53 - 1,
  2 ** 53,
  8_640_000_000_000_001,
];

const text = fc.constantFrom(...TEXTS);
const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: text },
  { weight: 4, arbitrary: fc.constantFrom<unknown>(null, true, false, ...NUMBERS) },
  { weight: 2, arbitrary: fc.constantFrom<unknown>([], {}, [[]], [null], { '': 1 }, [{}], { toJSON: 1 }) },
  { weight: 2, arbitrary: fc.array(text, { maxLength: 4 }) },
  { weight: 2, arbitrary: fc.dictionary(text, fc.constantFrom<unknown>(0, null, 'x', [], {}), { maxKeys: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom(10, 64, 65, 500).map(nested) },
);

/** Nested arrays. */
function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

/** Escapes that no URL library produces. */
const ESCAPES = [
  '%',
  '%2',
  '%zz',
  '%ff',
  '%c0%af',
  '%ED%A0%80',
  '%00',
  '%0d%0aX-Injected:%201',
  '%2e%2e',
  '..',
  '.',
  '..%2f..%2f',
  '%252e%252e%252f',
  ';a=b',
  '%2F',
  '%5c',
  '~',
  '*',
  '%F0%9F%90%8B',
  'x'.repeat(9_000),
];
const escaped = fc.oneof(fc.constantFrom(...ESCAPES), text.map(encode));

/** Like encodeURIComponent, but accepts lone surrogates. */
function encode(value: string): string {
  return encodeURIComponent(
    value.replace(/[\ud800-\udfff]/g, (half, at, all) => (isPaired(all, at) ? half : '\ufffd')),
  );
}

function isPaired(all: string, at: number): boolean {
  const isHigh = (index: number) => /[\ud800-\udbff]/.test(all[index] ?? '');
  const isLow = (index: number) => /[\udc00-\udfff]/.test(all[index] ?? '');
  return (isHigh(at) && isLow(at + 1)) || (isLow(at) && isHigh(at - 1));
}

const HEADERS: Record<string, string[]> = {
  'content-type': [
    '',
    'text/plain',
    'application/json; charset=utf-16',
    'application/json; charset=',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'multipart/form-data',
    'text/x-component',
    'application/json, text/html',
    ';',
    'x'.repeat(2_000),
  ],
  'content-encoding': ['gzip', 'br', 'deflate', 'zstd', 'identity', 'gzip, gzip', 'x-gzip', ''],
  'last-event-id': ['-1', '1e9', 'x', '99999999999999999999', '0', '9007199254740991'],
  accept: ['', '*/*;q=x', 'text/event-stream', 'application/json;q=0'],
  'accept-encoding': ['gzip;q=x', '*', 'br'],
  range: ['bytes=0-', 'bytes=-1', 'bytes=9-1,2-3', 'x'],
  'if-none-match': ['*', '"x"', 'W/"'],
  'if-modified-since': ['x', 'Thu, 01 Jan 1970 00:00:00 GMT'],
  'x-http-method-override': ['DELETE'],
  'x-forwarded-for': ['x', '::1, 127.0.0.1', ','.repeat(500)],
  'x-forwarded-proto': ['https', 'javascript'],
  'x-forwarded-host': ['evil.example'],
  forwarded: ['for="[::1]";proto=x'],
  'x-request-id': ['x'.repeat(500), '\xff', '<script>'],
  traceparent: ['00-0-0-0', '00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-ff', 'x'],
  cookie: ['interlude=', 'interlude=ils_x', '__Host-interlude=x; =; ;', `a=${'b'.repeat(4_000)}`],
  origin: ['null', 'https://evil.example', 'x'],
  'sec-fetch-site': ['cross-site', 'same-origin', 'x'],
  'next-action': ['x', '0'.repeat(40)],
  rsc: ['1'],
  'next-router-state-tree': ['%5B', 'x'],
  'x-interlude-page': ['1'],
  expect: ['100-continue'],
  upgrade: ['websocket', 'h2c'],
  te: ['trailers'],
};

const DUPLICATE = '{"__proto__":{"a":1},"a":1,"a":2,';

/** Changes of a JSON-encoded body. */
const ENCODINGS: Record<string, (bytes: Buffer) => Buffer> = {
  'cut in half': (bytes) => bytes.subarray(0, bytes.length >> 1),
  'one byte short': (bytes) => bytes.subarray(0, Math.max(0, bytes.length - 1)),
  empty: () => Buffer.alloc(0),
  'two values': (bytes) => Buffer.concat([bytes, bytes]),
  'names twice': (bytes) => Buffer.concat([Buffer.from(DUPLICATE), bytes.subarray(1)]),
  'no UTF-8': (bytes) => Buffer.concat([bytes.subarray(0, bytes.length >> 1), Buffer.from([0xff, 0xc0]), bytes]),
  'half a surrogate pair': (bytes) => Buffer.from(bytes.toString('latin1').replace('":"', '":"\\ud800'), 'latin1'),
  'a NUL': (bytes) => Buffer.from(bytes.toString('latin1').replace('":"', '":"\\u0000'), 'latin1'),
  'a raw NUL': (bytes) => Buffer.concat([bytes, Buffer.alloc(3)]),
  'a byte order mark': (bytes) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]),
  'UTF-16': (bytes) => Buffer.from(bytes.toString('utf8'), 'utf16le'),
  'a number beyond all numbers': (bytes) => Buffer.from(bytes.toString('latin1').replace(/:\d+/, ':1e999'), 'latin1'),
  'not a number': (bytes) => Buffer.from(bytes.toString('latin1').replace(/:\d+/, ':NaN'), 'latin1'),
  'a hundred thousand brackets': () => Buffer.from('['.repeat(100_000)),
  'a hundred thousand objects': () => Buffer.from('{"a":'.repeat(100_000)),
  'white space': (bytes) => Buffer.concat([Buffer.from(' \n\t'.repeat(20_000)), bytes]),
  quotes: (bytes) => Buffer.from(bytes.toString('latin1').replaceAll('"', "'"), 'latin1'),
  'a form': () => Buffer.from('token=x&next=%2F%2Fevil&__proto__=1&a[]=1'),
  noise: () => Buffer.from(Array.from({ length: 200 }, (_, index) => (index * 167) % 256)),
};

/** Large or compressed bodies. Rare, because each costs as much as a thousand others. */
const PACKED: Record<string, (bytes: Buffer) => Buffer> = {
  'good gzip': (bytes) => gzipSync(bytes),
  'half of a gzip': (bytes) => gzipSync(bytes).subarray(0, 20),
  'a gzip with a tail': (bytes) => Buffer.concat([gzipSync(bytes), Buffer.from('tail')]),
  'a gzip in a gzip': (bytes) => gzipSync(gzipSync(bytes)),
  'no gzip': (bytes) => bytes,
};
const BOMB = gzipSync(Buffer.alloc(32 << 20, 32));
const TOO_LARGE = Buffer.alloc(9 << 20, 32);

const named = <Value>(table: Record<string, Value>) => fc.constantFrom(...Object.values(table));

/** A value's location in a body: container and key. */
type Place = { holder: Record<string, unknown>; key: string };

function placesIn(value: unknown, found: Place[] = []): Place[] {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array || found.length > 200) return found;
  for (const key of Object.keys(value)) {
    found.push({ holder: value as Record<string, unknown>, key });
    placesIn((value as Record<string, unknown>)[key], found);
  }
  return found;
}

/** Changes one value of a body, or the body itself; undefined removes it. */
function changed(at: number, change: (old: unknown) => unknown): Mutation {
  return (draft) => {
    const root = { body: draft.body };
    const places = placesIn(root);
    const { holder, key } = places[at % places.length] as Place;
    // a copy, because other requests share the tables' values
    holder[key] = copied(change(holder[key]));
    draft.body = root.body;
  };
}

function copied(value: unknown): unknown {
  return value === undefined || value instanceof Uint8Array ? value : JSON.parse(JSON.stringify(value));
}

const place = fc.nat(500);

const BODY: fc.Arbitrary<Mutation> = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(place, hostileValue).map(([at, value]) => changed(at, () => value)) },
  { weight: 3, arbitrary: place.map((at) => changed(at, () => undefined)) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(place, text, hostileValue)
      .map(([at, name, value]) => changed(at, (old) => withField(old, name, value))),
  },
  { weight: 2, arbitrary: place.map((at) => changed(at, otherType)) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(place, fc.constantFrom(2, 9, 129, 501))
      .map(([at, length]) => changed(at, (old) => Array.from({ length }, () => old))),
  },
);

/** Adds an own field, also for `__proto__`. */
function withField(old: unknown, name: string, value: unknown): unknown {
  return typeof old === 'object' && old !== null ? Object.fromEntries([...Object.entries(old), [name, value]]) : old;
}

function otherType(value: unknown): unknown {
  if (typeof value === 'string') return value.length;
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) return Object.fromEntries(value.entries());
  return typeof value === 'object' && value !== null ? Object.entries(value) : [value];
}

const MUTATIONS: readonly { weight: number; arbitrary: fc.Arbitrary<Mutation> }[] = [
  { weight: 30, arbitrary: BODY },
  {
    weight: 12,
    arbitrary: fc.tuple(fc.nat(12), escaped).map(([at, segment]) => ({ segments }) => {
      segments[at % segments.length] = segment;
    }),
  },
  {
    weight: 4,
    arbitrary: fc.tuple(fc.nat(12), escaped).map(([at, segment]) => ({ segments }) => {
      segments.splice(at % (segments.length + 1), at % 2, segment);
    }),
  },
  {
    weight: 14,
    arbitrary: fc.tuple(fc.nat(12), escaped).map(([at, value]) => ({ query }) => {
      const one = query[at % Math.max(1, query.length)];
      if (one === undefined) query.push(['limit', value]);
      else one[1] = value;
    }),
  },
  {
    weight: 4,
    arbitrary: fc.tuple(escaped, escaped).map(
      (one) =>
        ({ query }) =>
          void query.push([one[0], one[1]]),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.nat(12), fc.constantFrom(2, 129)).map(([at, times]) => ({ query }) => {
      const one = query[at % Math.max(1, query.length)] ?? (['q', 'x'] as [string, string]);
      for (let count = 0; count < times; count += 1) query.push([...one]);
    }),
  },
  {
    weight: 3,
    arbitrary: fc.nat(12).map(
      (at) =>
        ({ query }) =>
          void query.splice(at % (query.length + 1), 1),
    ),
  },
  {
    weight: 14,
    arbitrary: fc
      .constantFrom(...Object.entries(HEADERS).flatMap(([name, values]) => values.map((value) => [name, value])))
      .map(([name = '', value = '']) => ({ headers }) => {
        headers[name] = value;
      }),
  },
  {
    weight: 14,
    arbitrary: named(ENCODINGS).map(
      (encoding) =>
        ({ encodings }) =>
          void encodings.push(encoding),
    ),
  },
  {
    weight: 3,
    arbitrary: named(PACKED).map((encoding) => ({ encodings, headers }) => {
      encodings.push(encoding);
      headers['content-encoding'] = 'gzip';
    }),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(...METHODS).map((method) => (draft) => {
      draft.method = method;
    }),
  },
  {
    weight: 6,
    arbitrary: fc
      .constantFrom<WireRequest['sender']>(...ROLES.filter((role) => role !== 'owner'), 'nobody', 'nobody')
      .map((sender) => (draft) => {
        draft.sender = sender;
      }),
  },
];

/** Limited to one in a thousand because of their cost. */
const EXPENSIVE = fc.constantFrom<Mutation>(
  ({ encodings, headers }) => {
    encodings.push(() => BOMB);
    headers['content-encoding'] = 'gzip';
  },
  ({ encodings }) => void encodings.push(() => TOO_LARGE),
  (draft) => {
    draft.sender = 'unknown';
  },
);

/**
 * Mutations of valid requests for every documented operation.
 *
 * @param ids existing rows used in the valid requests
 */
export function malformedRequests(document: OpenApiDocument, ids: BusyAgent): fc.Arbitrary<WireRequest> {
  const drafts = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => draftOf(method.toUpperCase(), path, operation, ids)),
  );
  const mutations = fc.oneof(
    { weight: 999, arbitrary: fc.array(fc.oneof(...MUTATIONS), { minLength: 1, maxLength: 3, size: 'max' }) },
    { weight: 1, arbitrary: EXPENSIVE.map((one) => [one]) },
  );
  return fc.tuple(fc.oneof(...drafts), mutations).map(([draft, all]) => {
    for (const mutate of all) mutate(draft);
    return encoded(draft);
  });
}

function encoded({ method, segments, query, sender, headers, body, encodings }: Draft): WireRequest {
  const search = query.map(([name, value]) => `${name}=${value}`).join('&');
  const path = `/${segments.join('/')}${search === '' ? '' : `?${search}`}`;
  // an empty value omits the header
  const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''));
  if (body === undefined && encodings.length === 0) return { method, path, sender, headers: sent, body: null };
  let bytes: Buffer = body instanceof Uint8Array ? Buffer.from(body) : Buffer.from(JSON.stringify(body) ?? '');
  for (const encoding of encodings) bytes = encoding(bytes);
  return { method, path, sender, headers: sent, body: bytes };
}

/** Requests of one operation that are valid by its JSON Schema. */
function draftOf(method: string, path: string, operation: Operation, ids: BusyAgent): fc.Arbitrary<Draft> {
  const known = ids as unknown as Record<string, string>;
  const segments = path
    .slice(1)
    .split('/')
    .map((part) => part.replace(/^\{(\w+)\}$/, (_, name) => encode(known[name] ?? 'some-id')));
  const inQuery = operation.parameters.filter((one) => one.in === 'query');
  const [type, content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const isJson = type === 'application/json';
  const query = fc.tuple(
    ...inQuery.map(({ name, schema, required }) => {
      const values = valuesOf(schema, name, ids).map((value) => (Array.isArray(value) ? value : [value]));
      return (required ? values : fc.option(values, { nil: [], freq: 2 })).map((all) =>
        all.map((value): [string, string] => [name, encode(String(value))]),
      );
    }),
  );
  const body: fc.Arbitrary<unknown> =
    content === undefined
      ? fc.constant(undefined)
      : isJson
        ? valuesOf(content.schema, '', ids)
        : fc.constant(Buffer.from('words'));
  const permission = operation['x-permission'];
  const sender: WireRequest['sender'] =
    permission === undefined ? 'nobody' : permission === 'speak' ? 'runner' : 'admin';
  return fc.tuple(query, body).map(
    ([pairs, value]): Draft => ({
      method,
      segments: [...segments],
      query: pairs.flat(),
      sender,
      headers: type === undefined ? {} : { 'content-type': type.replace('*', 'plain') },
      body: copied(value),
      encodings: [],
    }),
  );
}

/** Values that match a schema, with ids of existing rows. */
function valuesOf(schema: JsonSchema, name: string, ids: BusyAgent): fc.Arbitrary<unknown> {
  const {
    type,
    anyOf,
    oneOf,
    enum: choices,
    properties,
    items,
  } = schema as {
    type?: string | string[];
    anyOf?: JsonSchema[];
    oneOf?: JsonSchema[];
    enum?: unknown[];
    properties?: Record<string, JsonSchema>;
    items?: JsonSchema;
  };
  if ('const' in schema) return fc.constant(schema.const);
  if (choices !== undefined) return fc.constantFrom(...choices);
  const branches = anyOf ?? oneOf;
  if (branches !== undefined) return fc.oneof(...branches.map((one) => valuesOf(one, name, ids)));
  switch (Array.isArray(type) ? type[0] : type) {
    case 'object':
      return objectOf(schema, properties ?? {}, ids);
    case 'array':
      return fc.array(valuesOf(items ?? {}, name, ids), { minLength: 1, maxLength: 3 });
    case 'string':
      return textOf(schema, name, ids);
    case 'integer':
    case 'number':
      return fc.constantFrom(Number(schema.minimum ?? 1) || 1, 1, 2, 50);
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    default:
      return fc.constantFrom<unknown>({}, 'text', 1, { a: [1] });
  }
}

function objectOf(schema: JsonSchema, properties: Record<string, JsonSchema>, ids: BusyAgent): fc.Arbitrary<unknown> {
  const required = (schema.required as string[] | undefined) ?? [];
  const values = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, valuesOf(one, name, ids)]));
  return fc.record(values, { requiredKeys: required });
}

function textOf({ pattern }: JsonSchema, name: string, ids: BusyAgent): fc.Arbitrary<unknown> {
  if (pattern !== undefined || /position|upTo/i.test(name)) return fc.constantFrom(ids.position, '0', '1', '999999');
  const known: Record<string, readonly string[]> = {
    ...Object.fromEntries(Object.entries(ids).map(([key, id]) => [key, [id]])),
    id: [ids.agentId, `${ids.agentId}/malformed`],
    agent: [ids.agentId],
    session: [ids.sessionId],
    threadId: [ids.sessionId],
    topic: ['fleet', `session:${ids.sessionId}`, `logs:${ids.agentId}`],
    ids: [ids.inboxId],
    type: ['CUSTOM', 'RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_FINISHED'],
    next: ['/', '/inbox'],
  };
  return fc.constantFrom(...(known[name] ?? ['text', 'other text']));
}

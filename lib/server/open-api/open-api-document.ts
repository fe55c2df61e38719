import * as access from '@interlude/protocol/access';
import * as agUi from '@interlude/protocol/ag-ui';
import * as agentState from '@interlude/protocol/agent-status';
import { withBasePath } from '@interlude/protocol/base-path.mjs';
import * as commands from '@interlude/protocol/commands';
import * as envelope from '@interlude/protocol/envelope';
import { ERROR_STATUS, type ErrorCode } from '@interlude/protocol/errors';
import * as fields from '@interlude/protocol/field-schemas';
import * as frames from '@interlude/protocol/frames';
import * as inbox from '@interlude/protocol/inbox';
import type { Content, JsonSchema, OpenApiDocument, Operation, Parameter } from '@interlude/protocol/open-api';
import * as readModels from '@interlude/protocol/read-models';
import { PERMISSIONS, type Permission, ROLES } from '@interlude/protocol/scope';
import * as storage from '@interlude/protocol/storage';
import * as turnPlaces from '@interlude/protocol/turn-places';
import { PROTOCOL_VERSION } from '@interlude/protocol/version';
import * as z from 'zod';
import { GROUPS, type RouteDoc } from './route-docs';

/** The fields of a route that its description needs. */
export interface DescribedRoute {
  method: string;
  pattern: string;
  access: Permission | 'open';
  status?: number;
  accepts?: { query?: Schema; bodies?: readonly Schema[] };
}

type Schema = z.ZodObject<z.ZodRawShape>;

const COMPONENTS = '#/components/schemas/';

/** Every exported schema with a capitalized name becomes a component of that name. */
const components = z.registry<{ id: string }>();
for (const module of [
  access,
  agUi,
  agentState,
  commands,
  envelope,
  fields,
  frames,
  inbox,
  readModels,
  storage,
  turnPlaces,
]) {
  for (const [id, schema] of Object.entries(module)) {
    if (/^[A-Z]/.test(id) && schema instanceof z.ZodType) components.add(schema, { id });
  }
}

/**
 * The API as an OpenAPI 3.1 document, from the route table, the schemas that parse requests and those of the responses.
 *
 * @throws Error for a route without an entry in route-docs.ts
 */
export function openApiDocument(routes: readonly DescribedRoute[]): OpenApiDocument {
  const paths: OpenApiDocument['paths'] = {};
  for (const route of routes) {
    const path = route.pattern.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Interlude',
      version: PROTOCOL_VERSION,
      description:
        'The live dashboard for coding agents. Times are epoch milliseconds. A position is a row’s place in the server’s single order. Ignore unknown fields and frames. Redacted responses include a `redacted` count. PROTOCOL.md is normative.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: withBasePath('/'), description: 'This server' }],
    tags: GROUPS.map(({ name, about }) => ({ name, description: about })),
    paths,
    components: {
      schemas: { ...schemas, Error: ERROR },
      responses: REFUSALS,
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'A token from `interlude tokens create` or Settings → Access, or the installation’s own token.',
        },
        signIn: {
          type: 'apiKey',
          in: 'cookie',
          name: 'interlude',
          description: 'A browser sign-in; `__Host-interlude` over TLS. Only same-origin requests are accepted.',
        },
      },
    },
  };
}

const schemas = componentSchemas();

function componentSchemas(): Record<string, JsonSchema> {
  const generated = z.toJSONSchema(components, { io: 'input', unrepresentable: 'any', uri: (id) => COMPONENTS + id });
  const named = Object.entries(generated.schemas).map(([name, schema]) => {
    const { $id: _id, $schema: _schema, id: _name, ...rest } = schema as JsonSchema;
    return [name, rest] as const;
  });
  return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A reference to a component, or the schema itself. Constraints that JSON Schema can't express appear in refusals. */
function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const id = components.get(schema)?.id;
  if (id !== undefined) return { $ref: COMPONENTS + id };
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest;
}

function operationOf(route: DescribedRoute): Operation {
  const { method, pattern, access: permission } = route;
  const key = `${method} ${pattern.replace(/^\/api\/v1/, '')}`;
  const group = GROUPS.find(({ routes }) => Object.hasOwn(routes, key));
  const doc = group?.routes[key];
  if (group === undefined || doc === undefined) throw new Error(`${key} has no entry in route-docs.ts`);
  const requestBody = bodyOf(route, doc);
  const parameters = parametersOf(route, doc);
  const roles = ROLES.filter((role) => permission !== 'open' && PERMISSIONS[role].includes(permission));
  return {
    operationId: idOf(method, pattern),
    tags: [group.name],
    summary: doc.summary,
    ...(permission === 'open'
      ? { description: 'No authentication.', security: [] }
      : {
          description: `Roles: ${roles.join(', ')}.`,
          'x-permission': permission,
          // only tokens may act as runners
          security: permission === 'speak' ? [{ token: [] }] : [{ token: [] }, { signIn: [] }],
        }),
    parameters,
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: withPages({ ...answerOf(route, doc), ...refusalsOf(route, key, parameters, requestBody) }, doc),
  };
}

/** `GET /api/v1/sessions/:sessionId/tasks` is `getSessionsBySessionIdTasks`. */
function idOf(method: string, pattern: string): string {
  const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
  const words = pattern
    .split('/')
    .filter((part) => !['', 'api', 'v1'].includes(part))
    .map((part) => part.replace(/^:/, 'by-').split(/[-.]/).map(capital).join(''));
  const atRoot = !pattern.startsWith('/api/') && /z$/.test(pattern) ? 'AtRoot' : '';
  return `${method.toLowerCase()}${words.join('')}${atRoot}`;
}

function parametersOf({ pattern, accepts }: DescribedRoute, doc: RouteDoc): Parameter[] {
  const inPath = [...pattern.matchAll(/:(\w+)/g)].map(
    ([, name = '']): Parameter => ({ name, in: 'path', required: true, schema: { type: 'string', minLength: 1 } }),
  );
  const named = (place: Parameter['in'], schema: Schema | undefined) =>
    Object.entries(schema?.shape ?? {}).map(([name, field]) => parameterOf(place, name, field as z.ZodType));
  return [...inPath, ...named('query', accepts?.query ?? doc.query), ...named('header', doc.headers)];
}

/** Defaults of null, '' and [] mean "absent" to handlers, so the document omits them. */
function parameterOf(place: Parameter['in'], name: string, field: z.ZodType): Parameter {
  const { $schema: _, description, ...schema } = z.toJSONSchema(field, { io: 'output', unrepresentable: 'any' });
  const isAbsent = schema.default === null || schema.default === '' || Array.isArray(schema.default);
  if (isAbsent) delete schema.default;
  const one = schema.anyOf?.find((each) => typeof each === 'object' && each.type !== 'null');
  const type = Array.isArray(schema.type) ? schema.type.filter((each) => each !== 'null')[0] : schema.type;
  return {
    name,
    in: place,
    ...(description === undefined ? {} : { description }),
    ...(field.safeParse(undefined).success ? {} : { required: true }),
    schema: (one ?? { ...schema, type }) as JsonSchema,
  };
}

function bodyOf({ accepts }: DescribedRoute, { body }: RouteDoc): Operation['requestBody'] {
  const { bodies = [] } = accepts ?? {};
  const [first, ...more] = bodies.map(jsonSchemaOf);
  if (first !== undefined) {
    const schema = more.length === 0 ? first : { anyOf: [first, ...more] };
    const required = !bodies.some((each) => each.safeParse({}).success);
    return { required, content: { 'application/json': { schema } } };
  }
  if (body === undefined) return undefined;
  const schema = jsonSchemaOf(body.schema);
  const content = Object.fromEntries(body.types.map((type) => [type, { schema }]));
  return { required: body.isOptional !== true, content };
}

function answerOf({ status = 200 }: DescribedRoute, doc: RouteDoc): Operation['responses'] {
  const known = doc.status ?? status;
  const content = contentOf(doc);
  return {
    [known]: {
      description: MEANING[known] ?? 'Success',
      ...(Object.keys(content).length === 0 ? {} : { content }),
    },
  };
}

const MEANING: Record<number, string> = { 201: 'Created', 202: 'Queued', 303: 'Redirect' };

function contentOf({ answer, content }: RouteDoc): Content {
  if (content === undefined)
    return answer === undefined ? {} : { 'application/json': { schema: jsonSchemaOf(answer) } };
  return Object.fromEntries(
    Object.entries(content).map(([type, description]) => {
      if (type === '*/*') return [type, { schema: {} }];
      const schema = { type: 'string', ...(description === '' ? {} : { description }) };
      return [type, { schema: answer === undefined ? schema : { ...schema, [`x-${partOf(type)}`]: dataOf(answer) } }];
    }),
  );
}

function partOf(type: string): string {
  return type === 'text/event-stream' ? 'frames' : 'lines';
}

/** The data of each frame by name, or a reference to the only kind of data. */
function dataOf(answer: z.ZodType): JsonSchema {
  const id = components.get(answer)?.id ?? '';
  if (!id.endsWith('FrameData')) return { $ref: COMPONENTS + id };
  return schemas[id]?.properties as JsonSchema;
}

/** Adds the statuses that may come with a page for browsers. */
function withPages(responses: Operation['responses'], { pages = [] }: RouteDoc): Operation['responses'] {
  const all = { ...responses };
  for (const status of pages) {
    const refusal = all[status]?.$ref === undefined ? undefined : REFUSALS[nameOf(status)];
    const { content, ...rest } = refusal ?? { description: MEANING[status] ?? 'A page' };
    all[status] = { ...rest, content: { ...content, 'text/html': { schema: { type: 'string' } } } };
  }
  return all;
}

/** Refusals that a route may respond with. */
function refusalsOf(
  { access: permission, pattern, method }: DescribedRoute,
  key: string,
  parameters: readonly Parameter[],
  body: Operation['requestBody'],
): Operation['responses'] {
  const isOpen = permission === 'open';
  const isForm = /^POST \/sign-(in|out)$/.test(key);
  const hasInput =
    body !== undefined || parameters.some(({ in: place }) => place !== 'header' || key === 'POST /events');
  const applies: Record<number, boolean> = {
    400: hasInput,
    401: !isOpen || key === 'POST /sign-out',
    403: !isOpen || isForm,
    404: pattern.includes(':') || /provider|callback|logout/.test(pattern),
    409: !isOpen && method !== 'GET',
    413: body !== undefined,
    // the route reads any content type as a form
    415: body !== undefined && !isForm,
    421: !/\/(healthz|readyz)$/.test(pattern),
    429: !isOpen || /sign/.test(pattern),
    500: true,
    503: true,
  };
  const statuses = Object.keys(applies).filter((status) => applies[Number(status)]);
  return Object.fromEntries(
    statuses.map((status) => [status, { $ref: `#/components/responses/${nameOf(Number(status))}` }]),
  );
}

const codes = Object.entries(ERROR_STATUS) as [ErrorCode, number][];

const ERROR: JsonSchema = {
  type: 'object',
  description: 'Every refusal. Further fields give details: `expectedSeq`, `currentEpoch`, `fields`, `reason`…',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { type: 'string', enum: codes.map(([code]) => code) },
        message: { type: 'string', description: 'What happened, and what to do next.' },
      },
      required: ['code', 'message'],
      additionalProperties: true,
    },
  },
  required: ['error'],
};

function nameOf(status: number): string {
  return `Refused${status}`;
}

const REFUSALS: Record<string, { description: string; content?: Content }> = Object.fromEntries(
  [...new Set(codes.map(([, status]) => status))].map((status) => {
    const known = codes.filter(([, each]) => each === status).map(([code]) => code);
    const schema = {
      allOf: [{ $ref: `${COMPONENTS}Error` }],
      properties: { error: { properties: { code: { enum: known } } } },
    };
    const headers =
      status === 429 || status === 503
        ? { 'Retry-After': { description: 'In seconds.', schema: { type: 'integer' } } }
        : undefined;
    const description = known.map((code) => `\`${code}\``).join(', ');
    return [
      nameOf(status),
      { description, ...(headers ? { headers } : {}), content: { 'application/json': { schema } } },
    ];
  }),
);

import { placed } from '@interlude/protocol/base-path.mjs';
import { ERROR_STATUS, type ErrorCode } from '@interlude/protocol/errors';
import type { Content, JsonSchema, OpenApiDocument, Operation, Parameter } from '@interlude/protocol/open-api';
import { MAY, type Permission, ROLES } from '@interlude/protocol/scope';
import { PROTOCOL_VERSION } from '@interlude/protocol/version';
import * as z from 'zod';
import made from './answer-schemas.json';
import { jsonSchemaOf, otherAnswers, PAGE, READS } from './read-by-themselves';
import { GROUPS, wordsOf } from './route-words';

/** As much of a route as its description needs. */
export interface DescribedRoute {
  method: string;
  pattern: string;
  access: Permission | 'open';
  status?: number;
  takes?: { query?: Schema; bodies?: readonly Schema[] };
}

type Schema = z.ZodObject<z.ZodRawShape>;

const answers = made.answers as Record<string, JsonSchema>;
const pieces = Object.fromEntries(
  Object.entries(made.pieces as Record<string, JsonSchema>).map(([route, schema]) => [route, frames(schema)]),
);
const others = otherAnswers(pieces);

/**
 * The API as OpenAPI 3.1 describes it, from the table of routes, the schemas by which requests are parsed, and the
 * types of the answers.
 *
 * @throws Error for a route that nobody has described
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
        'The live dashboard for coding agents. Times are epoch milliseconds; a position says where a row stands in the order of the whole server. Fields and frames that you don’t know are to be ignored. Whoever is told no secrets finds in `redacted` how many were left out. PROTOCOL.md is normative.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: placed('/'), description: 'This server' }],
    tags: GROUPS.map(({ name, about }) => ({ name, description: about })),
    paths,
    components: {
      schemas: { ...(made.schemas as Record<string, JsonSchema>), Error: ERROR },
      responses: REFUSALS,
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'A token made with “interlude tokens create” or under Settings, or the installation’s own.',
        },
        signIn: {
          type: 'apiKey',
          in: 'cookie',
          name: 'interlude',
          description:
            'Somebody signed in with a browser: `__Host-interlude` over TLS. Such requests come from the same origin.',
        },
      },
    },
  };
}

function operationOf(route: DescribedRoute): Operation {
  const { method, pattern, access } = route;
  const path = pattern.replace(/^\/api\/v1/, '');
  const words = wordsOf(method, path);
  const key = `${method} ${path}`;
  if (words === undefined) throw new Error(`${key} is described nowhere: see route-words.ts`);
  const requestBody = bodyOf(route, key);
  return {
    operationId: idOf(method, pattern),
    tags: [words.group],
    summary: words.summary,
    ...(access === 'open'
      ? { description: 'Open to anybody.', security: [] }
      : {
          description: `For the roles ${rolesThatMay(access).join(', ')}.`,
          'x-permission': access,
          // what runners do no sign-in opens
          security: access === 'speak' ? [{ token: [] }] : [{ token: [] }, { signIn: [] }],
        }),
    parameters: parametersOf(route, key),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: withPages({ ...answerOf(route, key), ...refusalsOf(route, key, requestBody !== undefined) }, key),
  };
}

function rolesThatMay(permission: Permission): string[] {
  return ROLES.filter((role) => MAY[role].includes(permission));
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

function parametersOf({ pattern, takes }: DescribedRoute, key: string): Parameter[] {
  const inPath = [...pattern.matchAll(/:(\w+)/g)].map(
    ([, name = '']): Parameter => ({ name, in: 'path', required: true, schema: { type: 'string', minLength: 1 } }),
  );
  const { query } = takes ?? {};
  const inQuery = query === undefined ? [] : Object.keys(query.shape).map((name) => argumentOf(query, name));
  return [...inPath, ...inQuery, ...((READS[key]?.parameters ?? []) as Parameter[])];
}

/** An argument that is left out is null, or empty, for handlers only. */
function argumentOf(query: Schema, name: string): Parameter {
  const field = query.shape[name] as z.ZodType;
  const { $schema: _, description, ...schema } = z.toJSONSchema(field, { io: 'output', unrepresentable: 'any' });
  const isNothing = schema.default === null || schema.default === '' || Array.isArray(schema.default);
  if (isNothing) delete schema.default;
  const one = schema.anyOf?.find((each) => typeof each === 'object' && each.type !== 'null');
  const type = Array.isArray(schema.type) ? schema.type.filter((each) => each !== 'null')[0] : schema.type;
  return {
    name,
    in: 'query',
    ...(description === undefined ? {} : { description }),
    ...(field.safeParse(undefined).success ? {} : { required: true }),
    schema: (one ?? { ...schema, type }) as JsonSchema,
  };
}

function bodyOf({ takes }: DescribedRoute, key: string): Operation['requestBody'] {
  const { bodies = [] } = takes ?? {};
  if (bodies.length === 0) return READS[key]?.body;
  const [schema, ...more] = bodies.map(jsonSchemaOf);
  return {
    required: !bodies.some((body) => body.safeParse({}).success),
    content: { 'application/json': { schema: more.length === 0 ? (schema ?? {}) : { anyOf: [schema, ...more] } } },
  };
}

function answerOf({ status = 200 }: DescribedRoute, key: string): Operation['responses'] {
  const other = others[key];
  const schema = answers[key];
  if (other === undefined && schema === undefined) throw new Error(`nobody says what ${key} answers: see answers.ts`);
  const content = other?.content ?? { 'application/json': { schema: schema ?? {} } };
  const known = other?.status ?? status;
  return {
    [known]: {
      description: MEANS[known] ?? 'The answer',
      ...(Object.keys(content).length === 0 ? {} : { content }),
    },
  };
}

/** Adds the statuses that may come with a page for browsers. */
function withPages(responses: Operation['responses'], key: string): Operation['responses'] {
  const all = { ...responses };
  for (const status of others[key]?.pages ?? []) {
    const refusal = all[status]?.$ref === undefined ? undefined : REFUSALS[nameOf(status)];
    const { content, ...told } = refusal ?? { description: MEANS[status] ?? 'A page' };
    all[status] = { ...told, content: { ...content, ...PAGE } };
  }
  return all;
}

const MEANS: Record<number, string> = {
  200: 'The answer',
  201: 'It is kept from now on',
  202: 'It is queued',
  303: 'Go on there, or do what the page says',
};

/** Which refusals a route may answer with, by what it is asked. */
function refusalsOf({ access, pattern, method, takes }: DescribedRoute, key: string, hasBody: boolean) {
  const hasQuery = takes?.query !== undefined || READS[key]?.parameters !== undefined;
  const statuses = new Set([500, 503]);
  if (!/\/(healthz|readyz)$/.test(pattern)) statuses.add(421);
  if (access !== 'open') for (const status of [401, 403]) statuses.add(status);
  if (hasQuery || hasBody || pattern.includes(':')) statuses.add(400);
  if (pattern.includes(':') || /provider|callback|logout/.test(pattern)) statuses.add(404);
  if (hasBody) for (const status of [413, 415]) statuses.add(status);
  if (access !== 'open' && method !== 'GET') statuses.add(409);
  if (access === 'open' ? /sign/.test(pattern) : true) statuses.add(429);
  if (/^POST \/sign-(in|out)$/.test(key)) statuses.add(403);
  if (key === 'POST /sign-out') statuses.add(401);
  // any content type is read as a form
  if (/^POST \/sign-(in|out)$/.test(key)) statuses.delete(415);
  return Object.fromEntries(
    [...statuses].sort((a, b) => a - b).map((status) => [status, { $ref: `#/components/responses/${nameOf(status)}` }]),
  );
}

const codes = Object.entries(ERROR_STATUS) as [ErrorCode, number][];

const ERROR: JsonSchema = {
  type: 'object',
  description: 'Every refusal. Further fields say more: `expectedSeq`, `currentEpoch`, `fields`, `reason`…',
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
      allOf: [{ $ref: '#/components/schemas/Error' }],
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

/** The data of each kind of frame, by its name. */
function frames({ $ref, properties }: JsonSchema): JsonSchema {
  const named = made.schemas as Record<string, JsonSchema>;
  const name = typeof $ref === 'string' ? $ref.slice('#/components/schemas/'.length) : null;
  return (name === null ? properties : named[name]?.properties) as JsonSchema;
}

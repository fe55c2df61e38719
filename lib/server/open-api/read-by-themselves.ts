import { ATTACHMENT_TYPES } from '@interlude/protocol/attachments';
import {
  eventRecordSchema,
  ingestRequestSchema,
  logRecordSchema,
  lostRecordSchema,
  statusRecordSchema,
} from '@interlude/protocol/envelope';
import { MAX_TOPICS } from '@interlude/protocol/limits';
import type { Content, JsonSchema } from '@interlude/protocol/open-api';
import * as z from 'zod';

/** What the document says of routes that read their requests, or write their answers, without the table's schemas. */

interface Reads {
  parameters?: readonly object[];
  /** @param named what the answers are made of */
  body?: { required: boolean; content: Content };
}

const position = { type: 'string', pattern: '^(0|[1-9][0-9]{0,15})$' };
const query = (name: string, schema: JsonSchema, description: string, required = false) => ({
  name,
  in: 'query',
  description,
  ...(required ? { required } : {}),
  schema,
});
const after = query('after', position, 'Resume behind this position; 0 is the beginning. Without it: from now on.');
const lastEventId = {
  name: 'Last-Event-ID',
  in: 'header',
  description: 'As browsers send it when they connect again; it counts for more than `after`.',
  schema: position,
};

const records = [eventRecordSchema, logRecordSchema, statusRecordSchema, lostRecordSchema].map((record) =>
  jsonSchemaOf(record),
);
const sent = jsonSchemaOf(ingestRequestSchema);
const runInput: JsonSchema = {
  type: 'object',
  description: 'A RunAgentInput, as AG-UI clients send it.',
  externalDocs: { url: 'https://docs.ag-ui.com/sdk/js/core/types#runagentinput' },
  properties: {
    threadId: { type: 'string', description: 'The session, unless `session` names it.' },
    runId: { type: 'string' },
    messages: { type: 'array', items: { type: 'object' }, description: 'The history: what is new at its end is sent.' },
    resume: { type: 'array', items: { type: 'object' }, description: 'Answers to interrupts.' },
    forwardedProps: {
      type: 'object',
      properties: {
        interlude: {
          type: 'object',
          properties: {
            sessionId: { type: 'string' },
            connect: { type: 'boolean' },
            follow: { type: ['boolean', 'number'] },
          },
        },
      },
    },
  },
  required: ['threadId', 'runId'],
};

const signInForm = {
  type: 'object',
  properties: { token: { type: 'string' }, next: { type: 'string', description: 'A path of this server.' } },
  required: ['token'],
};

export const READS: Record<string, Reads> = {
  'POST /events': {
    body: {
      required: true,
      content: {
        'application/json': {
          schema: {
            ...sent,
            properties: {
              ...(sent.properties as JsonSchema),
              records: {
                ...((sent.properties as JsonSchema).records as JsonSchema),
                items: { anyOf: records },
                description:
                  'Each is judged by itself: one that can’t be taken is kept in quarantine, and told in `rejected`.',
              },
            },
          },
        },
      },
    },
    parameters: [
      {
        name: 'Content-Encoding',
        in: 'header',
        description: 'The body may be packed.',
        schema: { type: 'string', enum: ['gzip', 'identity'] },
      },
    ],
  },
  'GET /stream': {
    parameters: [
      query(
        'topic',
        { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: MAX_TOPICS },
        '`fleet`, `session:<id>` or `logs:<agentId>`, each at most once.',
        true,
      ),
      after,
      lastEventId,
    ],
  },
  'GET /agents/:agentId/commands': {
    parameters: [
      query('runner', { type: 'string' }, 'The runner’s id: a newer one of the same agent takes over.'),
      query('startedAt', { type: 'integer', minimum: 0 }, 'When it began, in epoch milliseconds; with `runner`.'),
      { ...after, description: 'The id of the last command it has. Without it: all that are open.' },
      lastEventId,
    ],
  },
  'POST /sessions/:sessionId/attachments': {
    body: {
      required: true,
      content: Object.fromEntries(ATTACHMENT_TYPES.map((type) => [type, { schema: {} }])),
    },
  },
  'POST /agui/:agentId': { body: { required: true, content: { 'application/json': { schema: runInput } } } },
  'POST /agui/:agentId/connect': { body: { required: true, content: { 'application/json': { schema: runInput } } } },
  'GET /sign-in': {
    parameters: [
      query('token', { type: 'string' }, 'The code in a link that was printed.'),
      query('next', { type: 'string' }, 'Where to go on to: a path of this server.'),
    ],
  },
  'POST /sign-in': {
    body: { required: true, content: { 'application/x-www-form-urlencoded': { schema: signInForm } } },
  },
  'POST /sign-out': {
    body: {
      required: false,
      content: {
        'application/x-www-form-urlencoded': {
          schema: { type: 'object', properties: { principal: { type: 'string' } } },
        },
      },
    },
  },
  'GET /sign-in/provider': {
    parameters: [query('next', { type: 'string' }, 'Where to go on to: a path of this server.')],
  },
  'POST /sign-in/back-channel-logout': {
    body: {
      required: true,
      content: {
        'application/x-www-form-urlencoded': {
          schema: { type: 'object', properties: { logout_token: { type: 'string' } }, required: ['logout_token'] },
        },
      },
    },
  },
};

export interface OtherAnswer {
  status: number;
  content: Content;
  /** Other statuses that may come with a page for browsers; a refusal may be JSON as well. */
  pages?: readonly number[];
}

/** The content of such a page. */
export const PAGE: Content = { 'text/html': { schema: { type: 'string' } } };

/**
 * What is answered that is not JSON.
 *
 * @param pieces by route, what streams and files are made of
 */
export function otherAnswers(pieces: Record<string, JsonSchema>): Record<string, OtherAnswer> {
  const stream = (route: string) => ({
    status: 200,
    content: {
      'text/event-stream': {
        schema: {
          type: 'string',
          description:
            'Server-sent events: of each `event` the `data` is JSON, as in `x-frames`. Skip names that you don’t know. The `id` is a position, after which to resume; a comment line comes at least every 15 s.',
          'x-frames': pieces[route],
        },
      },
    },
  });
  const agUi = {
    status: 200,
    content: {
      'text/event-stream': {
        schema: {
          type: 'string',
          description: 'Server-sent events without names: each `data` is an AG-UI event.',
          'x-frames': { $ref: '#/components/schemas/ServedEvent' },
        },
      },
    },
  };
  return {
    'GET /stream': stream('GET /stream'),
    'GET /agents/:agentId/commands': stream('GET /agents/:agentId/commands'),
    'POST /agui/:agentId': agUi,
    'POST /agui/:agentId/connect': agUi,
    'GET /audit/export': {
      status: 200,
      content: {
        'application/x-ndjson': {
          schema: {
            type: 'string',
            description: 'A line for each entry, the oldest first.',
            'x-lines': pieces['GET /audit/export'],
          },
        },
      },
    },
    'GET /agents/:agentId/logs/download': { status: 200, content: { 'text/plain': { schema: { type: 'string' } } } },
    'GET /metrics': { status: 200, content: { 'text/plain': { schema: { type: 'string' } } } },
    'GET /attachments/:hash': { status: 200, content: { '*/*': { schema: {} } } },
    'GET /openapi.json': { status: 200, content: { 'application/json': { schema: { type: 'object' } } } },
    'GET /sign-in': { status: 303, content: {}, pages: [200, 503] },
    'POST /sign-in': { status: 303, content: {} },
    'GET /sign-in/provider': { status: 303, content: {}, pages: [404, 421, 429, 503] },
    'GET /sign-in/callback': { status: 303, content: {}, pages: [400, 403, 404, 421, 429, 503] },
    'POST /sign-in/back-channel-logout': { status: 200, content: {} },
    'POST /sign-out': { status: 303, content: {}, pages: [200, 409] },
    'HEAD /healthz': { status: 200, content: {} },
    'HEAD /readyz': { status: 200, content: {} },
  };
}

/** Of what is sent, before it is parsed. What JSON Schema can’t say stands in the refusal. */
export function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest;
}

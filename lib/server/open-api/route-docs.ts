import * as access from '@interlude/protocol/access';
import { ServedEvent } from '@interlude/protocol/ag-ui';
import { ATTACHMENT_TYPES } from '@interlude/protocol/attachments';
import * as command from '@interlude/protocol/commands';
import * as envelope from '@interlude/protocol/envelope';
import { Attachment, Position } from '@interlude/protocol/field-schemas';
import { FrameData } from '@interlude/protocol/frames';
import {
  FleetCounts,
  InboxList,
  InboxMarked,
  WebhookDeliveries,
  WebhookStatus,
  WebhookTest,
} from '@interlude/protocol/inbox';
import { MAX_TOPICS } from '@interlude/protocol/limits';
import * as model from '@interlude/protocol/read-models';
import { Storage } from '@interlude/protocol/storage';
import * as z from 'zod';

/** Documentation of a route beyond the route table. */
export interface RouteDoc {
  summary: string;
  /**
   * Schema of the JSON response; for `text/event-stream`, of each frame's data by name; for other content, of one line
   * or event.
   */
  answer?: z.ZodType;
  /** Media type and description of a response that is not JSON. */
  content?: Record<string, string>;
  /** Success status, if it differs from the route table. */
  status?: number;
  /** Statuses that may come with an HTML page for browsers. Refusals may be JSON as well. */
  pages?: readonly number[];
  /** Request schema of a route that parses its requests itself. */
  query?: z.ZodObject<z.ZodRawShape>;
  headers?: z.ZodObject<z.ZodRawShape>;
  body?: { types: readonly string[]; schema: z.ZodType; isOptional?: true };
}

interface Group {
  name: string;
  about: string;
  /** By method and path, without `/api/v1`. */
  routes: Record<string, RouteDoc>;
}

const json = (summary: string, answer: z.ZodType): RouteDoc => ({ summary, answer });

const JSON_TYPE = ['application/json'];
const FORM_TYPE = ['application/x-www-form-urlencoded'];

const lastEventId = z.object({
  'Last-Event-ID': Position.optional().describe('Sent by browsers when they reconnect. Takes precedence over `after`.'),
});
const next = z.string().optional().describe('Path on this server to continue to.');

const ingestBody = envelope.ingestRequestSchema.extend({
  records: z
    .array(
      z.union([
        envelope.eventRecordSchema,
        envelope.logRecordSchema,
        envelope.statusRecordSchema,
        envelope.lostRecordSchema,
      ]),
    )
    .min(1)
    .describe('Each record is validated on its own. Invalid ones are quarantined and listed in `rejected`.'),
});

const runInput = z
  .looseObject({
    threadId: z.string().describe('The session, unless `session` names it.'),
    runId: z.string(),
    messages: z.array(z.looseObject({})).optional().describe('The history. New messages at its end are sent.'),
    resume: z.array(z.looseObject({})).optional().describe('Answers to interrupts.'),
    forwardedProps: z
      .looseObject({
        interlude: z
          .looseObject({
            sessionId: z.string().optional(),
            connect: z.boolean().optional(),
            follow: z.union([z.boolean(), z.number()]).optional(),
          })
          .optional(),
      })
      .optional(),
  })
  .describe('A RunAgentInput as AG-UI clients send it: https://docs.ag-ui.com/sdk/js/core/types#runagentinput');

const agUiRun = {
  answer: ServedEvent,
  content: { 'text/event-stream': 'Server-sent events without names. The `data` of each is an AG-UI event.' },
  body: { types: JSON_TYPE, schema: runInput },
};

const FRAMES = {
  'text/event-stream':
    'Server-sent events. The `data` of each `event` is JSON, as listed in `x-frames`. Skip unknown names. The `id` is the position to resume after. A comment line arrives at least every 15 s.',
};

/** Groups and routes in reading order. */
export const GROUPS: readonly Group[] = [
  {
    name: 'Sessions',
    about: 'Sessions, their transcripts and their tasks.',
    routes: {
      'GET /sessions': json(
        'List sessions: the active and newest ones, or all that match, page by page',
        model.SessionList,
      ),
      'GET /sessions/:sessionId': json('Get a session', model.SessionDetail),
      'GET /sessions/:sessionId/transcript': json(
        'Get whole turns: the newest page, or the page before a turn',
        model.TranscriptPage,
      ),
      'GET /sessions/:sessionId/turn-at': json('Get the turn and tasks that ran at a given time', model.TurnAt),
      'GET /sessions/:sessionId/tasks': json('List background tasks', model.TaskList),
      'GET /sessions/:sessionId/tasks/:taskId': json('Get a task with its subagent’s transcript', model.TaskDetail),
      'GET /sessions/:sessionId/tasks/:taskId/output': json('Get the output of a task', model.TaskOutputDetail),
      'GET /sessions/:sessionId/requests/:requestId': json('Get a request as its turn shows it', model.RequestDetail),
      'GET /sessions/:sessionId/obligations': json('List pending and settled replies', model.SessionObligations),
      'GET /sessions/:sessionId/delivery': json('Check for missing records', model.SessionDelivery),
      'GET /attachments/:hash': { summary: 'Download an attachment', content: { '*/*': '' } },
      'GET /counts': json('Get all counts of the dashboard', FleetCounts),
      'GET /activity': json('Get recent activity: events per minute, durations of tasks and replies', model.Activity),
    },
  },
  {
    name: 'Live',
    about: 'One connection streams every change. It resumes after `Last-Event-ID` or `after`.',
    routes: {
      'GET /stream': {
        summary: 'Stream changes as server-sent events',
        answer: FrameData,
        content: FRAMES,
        query: z.object({
          topic: z
            .array(z.string())
            .min(1)
            .max(MAX_TOPICS)
            .describe('`fleet`, `session:<id>` or `logs:<agentId>`, each at most once.'),
          after: Position.optional().describe(
            'Resume after this position; 0 is the beginning. If absent, the stream starts now.',
          ),
        }),
        headers: lastEventId,
      },
    },
  },
  {
    name: 'Acting',
    about: 'Messages, commands and decisions. 202 means that the command is queued for the runner.',
    routes: {
      'POST /sessions/:sessionId/messages': json('Send a message, once per clientId', command.MessageResponse),
      'POST /sessions/:sessionId/attachments': {
        ...json('Upload an attachment for a message: the body is the bytes', Attachment),
        body: { types: ATTACHMENT_TYPES, schema: z.unknown() },
      },
      'POST /sessions/:sessionId/interrupt': json('Interrupt the open turn', command.CommandResponse),
      'POST /sessions/:sessionId/end': json('End the session permanently', command.CommandResponse),
      'POST /sessions/:sessionId/tasks/:taskId/stop': json('Stop a task', command.CommandResponse),
      'POST /sessions/:sessionId/tasks/:taskId/wake': json(
        'Start a turn with the result of an ended task',
        command.CommandResponse,
      ),
      'PUT /sessions/:sessionId/wake-rule': json(
        'Set the rule by which the runner starts such turns itself',
        command.WakeRuleResponse,
      ),
      'POST /sessions/:sessionId/requests/:requestId': json(
        'Decide a permission, or answer a question',
        command.CommandResponse,
      ),
      'PUT /sessions/:sessionId/arrangement': json(
        'Rename, pin or archive a session, without notifying its agent',
        model.ArrangementResponse,
      ),
      'POST /sessions/:sessionId/obligations/:messageId/waive': json('Waive a pending reply', command.WaiveResponse),
      'POST /sessions/:sessionId/obligations/:messageId/accept': json(
        'Accept a text as the reply',
        command.AcceptReplyResponse,
      ),
    },
  },
  {
    name: 'Inbox',
    about: 'Items that need a person, over the whole fleet, and the webhook that reports them.',
    routes: {
      'GET /inbox': json('List inbox items, page by page', InboxList),
      'POST /inbox/marks': json('Mark inbox items, or undo a mark', InboxMarked),
      'GET /webhook': json('Get the configured webhook and its health', WebhookStatus),
      'GET /webhook/deliveries': json('List webhook deliveries, newest first', WebhookDeliveries),
      'POST /webhook/test': json('Send a test call to the webhook', WebhookTest),
    },
  },
  {
    name: 'Agents',
    about: 'The agents behind the sessions, their outboxes and logs.',
    routes: {
      'GET /agents': json('List agents, page by page', model.AgentList),
      'GET /agents/:agentId': json(
        'Get an agent with its outboxes, newest sessions, failures and rejected records',
        model.AgentDetail,
      ),
      'GET /agents/:agentId/parked': json(
        'List records about tasks that must be assigned to a session',
        model.ParkedList,
      ),
      'POST /agents/:agentId/parked/:position/assign': json('Assign a record to a session', command.ParkedResponse),
      'POST /agents/:agentId/parked/:position/discard': json('Discard a record', command.ParkedResponse),
      'POST /agents/:agentId/insights/seen': json('Mark failures up to a position as seen', model.InsightsSeen),
      'PUT /agents/:agentId/retirement': json('Retire an agent, or restore it', command.RetireResponse),
      'GET /agents/:agentId/log-level': json('Get the current and the requested log level', model.LogLevelDetail),
      'PUT /agents/:agentId/log-level': json(
        'Request another log level, for a while or until changed',
        command.LogLevelResponse,
      ),
      'GET /agents/:agentId/logs': json('Get a page of log lines', model.LogPage),
      'GET /agents/:agentId/logs/components': json('List the components that log', model.LogComponentList),
      'GET /agents/:agentId/logs/download': {
        summary: 'Download all matching log lines as text',
        content: { 'text/plain': '' },
      },
    },
  },
  {
    name: 'Runners',
    about: 'For runners: deliver records, receive commands. See PROTOCOL.md and docs/runners.md.',
    routes: {
      'POST /events': {
        ...json('Deliver records exactly once and in order, regardless of retries', envelope.IngestResponse),
        headers: z.object({
          'Content-Encoding': z.enum(['gzip', 'identity']).optional().describe('The body may be compressed.'),
        }),
        body: { types: JSON_TYPE, schema: ingestBody },
      },
      'GET /agents/:agentId/commands': {
        summary: 'Stream commands as server-sent events',
        answer: command.CommandFrameData,
        content: FRAMES,
        query: z.object({
          runner: z.string().optional().describe('The runner’s id. A newer runner of the same agent takes over.'),
          startedAt: z.int().min(0).optional().describe('Start of the runner in epoch milliseconds; with `runner`.'),
          after: Position.optional().describe(
            'Id of the last received command. If absent, all open commands are sent.',
          ),
        }),
        headers: lastEventId,
      },
      'POST /agents/:agentId/commands/:commandId/ack': json('Acknowledge a command', command.CommandResponse),
      'GET /agents/:agentId/reply-obligations': json(
        'List an agent’s pending replies, oldest first',
        model.ObligationList,
      ),
    },
  },
  {
    name: 'AG-UI',
    about: 'The endpoint for AG-UI clients. See docs/agui.md.',
    routes: {
      'POST /agui/:agentId': { summary: 'Run: send the new messages and stream the result', ...agUiRun },
      'POST /agui/:agentId/connect': { summary: 'Stream a session’s history, then its new events', ...agUiRun },
    },
  },
  {
    name: 'Access',
    about: 'Sign-in, credentials, members and the audit. See docs/sign-in.md.',
    routes: {
      'GET /me': json('Get the sender’s identity, role, scope and expiry', access.Me),
      'GET /me/sign-ins': json('List the sender’s sign-ins', access.OwnSignIns),
      'DELETE /me/sign-ins': json('Sign out everywhere else', access.OwnSignIns),
      'GET /credentials': json('List tokens, sign-ins and embeds', access.CredentialList),
      'POST /tokens': json('Create a token; its secret is shown once', access.NewToken),
      'DELETE /credentials/:credentialId': json('Revoke a credential', access.CredentialResponse),
      'POST /sign-in-codes': json('Create a single-use sign-in link for an admin', access.SignInCode),
      'POST /embed-tokens': json(
        'Create a token that embeds a session, a log or the fleet in another site’s page',
        access.NewEmbed,
      ),
      'GET /members': json('List people who have signed in with the identity provider', access.MemberList),
      'PUT /members/:memberId': json('Change a member’s role, or block them', access.MemberResponse),
      'GET /audit': json('List audit entries, newest first', access.AuditPage),
      'GET /audit/export': {
        summary: 'Export all matching audit entries as JSON lines',
        answer: access.AuditEntry,
        content: { 'application/x-ndjson': 'One entry per line, oldest first.' },
      },
      'GET /audit/check': json('Verify that no entry was changed or removed', access.AuditCheck),
      'GET /sign-in': {
        summary: 'Sign in with a link',
        status: 303,
        pages: [200, 503],
        query: z.object({ token: z.string().optional().describe('The code in a sign-in link.'), next }),
      },
      'POST /sign-in': {
        summary: 'Sign in with a token',
        status: 303,
        body: { types: FORM_TYPE, schema: z.object({ token: z.string(), next }) },
      },
      'GET /sign-in/provider': {
        summary: 'Go to the identity provider',
        status: 303,
        pages: [404, 421, 429, 503],
        query: z.object({ next }),
      },
      'GET /sign-in/callback': {
        summary: 'Return from the identity provider',
        status: 303,
        pages: [400, 403, 404, 421, 429, 503],
      },
      'POST /sign-in/back-channel-logout': {
        summary: 'Receive a sign-out from the identity provider',
        status: 200,
        body: { types: FORM_TYPE, schema: z.object({ logout_token: z.string() }) },
      },
      'POST /sign-out': {
        summary: 'Sign out',
        status: 303,
        pages: [200, 409],
        body: { types: FORM_TYPE, schema: z.object({ principal: z.string().optional() }), isOptional: true },
      },
    },
  },
  {
    name: 'Operation',
    about: 'Health, metrics, storage and this description. See docs/operating.md.',
    routes: {
      'GET /healthz': json('Check that the process answers', z.object({ status: z.literal('ok') })),
      'HEAD /healthz': { summary: 'Check that the process answers', status: 200 },
      'GET /readyz': json('Check that the database is writable', z.object({ status: z.literal('ready') })),
      'HEAD /readyz': { summary: 'Check that the database is writable', status: 200 },
      'GET /storage': json('Get the size of the database by part and table', Storage),
      'GET /cron': json(
        'Do all due work, for hosts whose processes are short-lived',
        z.object({ status: z.literal('done') }),
      ),
      'GET /metrics': {
        summary: 'Get metrics of the server and fleet in Prometheus’ text format',
        content: { 'text/plain': '' },
      },
      'GET /openapi.json': json('Get this description', z.looseObject({})),
    },
  },
];

import * as z from 'zod';
import { RequestOption } from './ag-ui';
import { Sender } from './commands';
import { Position } from './field-schemas';
import { AGENT_STATES, LISTED_STATES, SESSION_GROUPS } from './session-states';
import { INBOX_KINDS } from './vocabulary';

/** The inbox: what needs a person, over the whole fleet. Times are epoch milliseconds on the server's clock. */

export const InboxKind = z
  .enum(INBOX_KINDS)
  .describe(
    'In display order. `permission`, `question`: a request is open. `overdue-reply`: an agent’s reply is overdue. `failure`: a session failed, or its process broke off. `undelivered`: a task ended while its agent was idle, and no turn took up its result in time. `lost-contact`: a session went silent with work under way. `hook-failure`: an agent has unseen failures. `delivery-gap`: records of a session were lost or rejected. `parked`: records about tasks must be assigned to a session.',
  );

export const InboxPerson = z
  .object({
    id: z.string().describe('As `Me.id`; `local` for everyone who signs in with this machine’s links or token.'),
    name: z.string(),
  })
  .describe('The person or program that claimed an item.');
export type InboxPerson = z.infer<typeof InboxPerson>;

export const InboxClaim = z.object({ by: InboxPerson, at: z.number() });
export type InboxClaim = z.infer<typeof InboxClaim>;

export const RequestPreview = z
  .object({
    tool: z.string().nullable(),
    line: z
      .string()
      .nullable()
      .describe('The start of the command, file or question, on one line; null if the request has none.'),
    input: z.unknown().optional().describe('The whole input of a permission, if it is short.'),
    options: z.array(RequestOption).optional().describe('The offered answers, if `input` is present.'),
  })
  .describe('Enough of a request for one line of a list.');
export type RequestPreview = z.infer<typeof RequestPreview>;

export const InboxRequest = z.object({
  id: z.string(),
  digest: z.string().nullable().describe('As `RequestItem.digest`. Null for readers who may not answer.'),
  openedPosition: Position,
  answerBy: z.number().nullable().describe('Last moment for an answer; null: no expiry.'),
  preview: RequestPreview.optional(),
});
export type InboxRequest = z.infer<typeof InboxRequest>;

export const InboxTask = z
  .object({ id: z.string(), runId: z.string().nullable(), position: Position })
  .describe('A run of a task; see `Task`.');
export type InboxTask = z.infer<typeof InboxTask>;

export const InboxMarks = z.object({
  seenAt: z.number().nullable(),
  snoozedUntil: z.number().nullable(),
  claim: InboxClaim.nullable().describe('The person who has claimed the item.'),
  doneAt: z.number().nullable().describe('When it stopped needing a person; null while it does.'),
});
export type InboxMarks = z.infer<typeof InboxMarks>;

export const InboxItem = InboxMarks.extend({
  id: z.string().describe('Opaque. A condition that recurs has the same id.'),
  kind: InboxKind,
  agentId: z.string(),
  sessionId: z.string().nullable().describe('Null if it is about the agent.'),
  session: z
    .object({ title: z.string().nullable(), name: z.string().nullable() })
    .nullable()
    .describe('Title and name of the session; null if it is about the agent. May be older than the session’s own row.'),
  title: z
    .string()
    .nullable()
    .describe('The request, message or problem, in the agent’s or the server’s words; null if the kind is enough.'),
  count: z.number().describe('Number of its failures, missing or parked records; else 1.'),
  request: InboxRequest.nullable().describe(
    'For a permission or question. `GET /sessions/:id/requests/:requestId` has the rest.',
  ),
  messageId: z.string().nullable().describe('For an overdue reply: the id of the message that awaits it.'),
  from: Sender.nullable().describe('For an overdue reply: who waits.'),
  task: InboxTask.optional().describe('For an undelivered result: the run of the task.'),
  occurredAt: z
    .number()
    .optional()
    .describe('For a failure that was received late: when it happened, on the server’s clock.'),
  since: z.number().describe('When it came up. Updated, with all marks cleared, if the item grows or recurs.'),
  openedPosition: Position.describe(
    'Where it came up. Unlike `updatedPosition`, it stays when the item is marked or comes back unchanged.',
  ),
  updatedPosition: Position,
}).describe('Something that needs a person until it is done.');
export type InboxItem = z.infer<typeof InboxItem>;

export const InboxList = z.object({
  position: Position,
  items: z.array(InboxItem).describe('Open items in the order of kinds, the oldest of each kind first.'),
  next: z.string().nullable().describe('Cursor for `after`; null at the end.'),
  counts: z.record(InboxKind, z.number()).describe('Matching items by kind, listed or not, up to 100,000.'),
});
export type InboxList = z.infer<typeof InboxList>;

const AgentCounts = z.record(z.enum([...AGENT_STATES, 'none']), z.number());

export const FleetCounts = z
  .object({
    position: Position,
    needsYou: z
      .number()
      .describe(
        'Sessions and agents with an inbox item that is open and not seen, snoozed, or claimed by someone else.',
      ),
    inbox: z.object({
      all: z.number().describe('Sessions and agents with open items.'),
      kinds: z.record(InboxKind, z.number()).describe('Those with an item of the kind that needs the reader.'),
      requests: z.number().describe('Permissions and questions that need the reader.'),
    }),
    sessions: z
      .record(z.enum(LISTED_STATES), z.number())
      .describe('By the state under which people find them: see `listed` of `GET /sessions`.'),
    groups: z
      .record(z.enum(SESSION_GROUPS), z.number())
      .describe('Sessions by group of the dashboard’s list. Each session counts once.'),
    agents: z.number(),
    agentStates: AgentCounts.describe('Agents by their `state`, without retired ones; `none`: no sessions.'),
    retiredStates: AgentCounts.describe('Retired agents by their `state`.'),
    alsoFailed: z
      .object({ active: z.number(), retired: z.number() })
      .describe('Of the agents that need input, those with an unseen failed session.'),
    changesAt: z.number().nullable().describe('When the next snooze ends; null if none does.'),
  })
  .describe('All counts of the dashboard, from one snapshot.');
export type FleetCounts = z.infer<typeof FleetCounts>;

export const InboxMarked = z.object({
  items: z.array(InboxItem).describe('The items as they are now, in the requested order, without unknown ones.'),
  changed: z
    .array(z.string())
    .describe('Ids of items left as they are: changed since they were shown, or not reopenable.'),
  applied: z.array(z.string()).describe('Ids of items that this mark changed. The others were already marked or done.'),
  position: Position,
});
export type InboxMarked = z.infer<typeof InboxMarked>;

/** The webhook: reports what comes up in the inbox. Times are epoch milliseconds on the server's clock. */

/** The request body. `text` is what Slack and compatible receivers show. */
export interface WebhookBody {
  text: string;
  interlude: {
    type: 'inbox.opened' | 'test';
    item: Pick<InboxItem, 'id' | 'kind' | 'agentId' | 'sessionId' | 'title' | 'count' | 'since'> | null;
    /** Page where a person can handle it; null if the server does not know its own address. */
    url: string | null;
  };
}

/** The `webhook-id` header, the same for each attempt. @param position where the item came up */
export function deliveryId(position: number): string {
  return `inbox_${position}`;
}

export const WebhookDeliveryState = z
  .enum(['waiting', 'delivered', 'withdrawn', 'gave-up'])
  .describe(
    '`waiting`: to be sent, or sent again. `delivered`: the receiver answered 2xx. `withdrawn`: the item was done before it was delivered. `gave-up`: delivery failed for a day.',
  );
export type WebhookDeliveryState = z.infer<typeof WebhookDeliveryState>;

export const WebhookDelivery = z.object({
  id: z.string().describe('As in the `webhook-id` header.'),
  itemId: z.string(),
  kind: InboxKind,
  state: WebhookDeliveryState,
  attempts: z.number(),
  createdAt: z.number(),
  dueAt: z.number(),
  attemptedAt: z.number().nullable(),
  status: z.number().nullable().describe('Status of the last response; null if there was none.'),
  error: z.string().nullable().describe('Why the last attempt failed; null if it did not.'),
});
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;

export const WebhookStatus = z.object({
  webhook: z
    .object({ host: z.string(), kinds: z.array(InboxKind), signed: z.boolean() })
    .nullable()
    .describe('Null: none is configured.'),
  problem: z.string().nullable().describe('Why the configured webhook is not used; null if it is, or if none is set.'),
  waiting: z.number(),
  last: WebhookDelivery.nullable().describe('The last attempted delivery.'),
  position: Position,
});
export type WebhookStatus = z.infer<typeof WebhookStatus>;

export const WebhookDeliveries = z.object({
  position: Position,
  deliveries: z.array(WebhookDelivery).describe('Newest first.'),
  next: Position.nullable().describe('Cursor for `before`; null at the end.'),
});
export type WebhookDeliveries = z.infer<typeof WebhookDeliveries>;

export const WebhookTest = z
  .object({ delivered: z.boolean(), status: z.number().nullable(), error: z.string().nullable() })
  .describe('Result of the call. The status of this response is 200 even if the call failed.');
export type WebhookTest = z.infer<typeof WebhookTest>;

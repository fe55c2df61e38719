import type { AgUiEvent, CommandEventValue, InterludeMetadata, MessageDeliveryValue } from '@interlude/protocol/ag-ui';
import type { AnsweredRequest, Command, CommandBodies, CommandState, CommandType } from '@interlude/protocol/commands';
import * as schema from '@interlude/protocol/commands';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { COMMAND_EXPIRY_MS, INTERRUPT_EXPIRY_MS, MESSAGE_EXPIRY_MS } from '@interlude/protocol/limits';
import type * as z from 'zod';

/**
 * Every command that people can send, one row per kind: its route, audit action and body. For a command that a runner
 * executes, also its term, expiry outcome and events.
 *
 * Every command requires the permission `act`, and applies to the agent or session in its path.
 */

/** A command's transition, as the transcript shows it. An expired command counts as failed. */
export interface Transition {
  /** The previous state; null for a new command. */
  from: CommandState | null;
  to: 'queued' | 'delivered' | 'done' | 'failed';
  reason: string | null;
  /** For a new message: the id from its client. */
  clientId?: string | null;
  /** For a new message: true if no runner is connected. */
  waits?: boolean;
}

interface Accepted {
  method: 'POST' | 'PUT';
  path: string;
  /** The action in the audit. */
  action: string;
  body: z.ZodObject<z.ZodRawShape>;
}

interface CommandKind<Type extends CommandType> extends Accepted {
  /** Milliseconds within which the runner must report the command's end. */
  termMs: number;
  /**
   * `delivered`: the outcome of a delivered command when its term expires. `clock`: `trusted` keeps the command while
   * the server's clock may be wrong.
   */
  expiry: { delivered: 'done' | 'expired'; clock: 'any' | 'trusted' };
  /** The events of a transition for the command's session. */
  events: (command: Command & { type: Type }, transition: Transition) => AgUiEvent[];
}

const EXPIRES = { delivered: 'expired', clock: 'any' } as const;

/** Commands that are queued for the agent's runner. */
export const COMMANDS = {
  message: {
    ...accepts('POST', '/sessions/:sessionId/messages', 'send message', schema.sendMessageSchema),
    termMs: MESSAGE_EXPIRY_MS,
    // A delivered message is in the agent's input, and the agent may still read it. An expired message is never sent
    // again.
    expiry: { delivered: 'done', clock: 'trusted' },
    events: messageEvents,
  },
  interrupt: {
    ...accepts('POST', '/sessions/:sessionId/interrupt', 'interrupt', schema.interruptSchema),
    // Only for the current process, not for a runner that connects later.
    termMs: INTERRUPT_EXPIRY_MS,
    expiry: EXPIRES,
    events: commandEvents(() => ({})),
  },
  'session.end': {
    ...accepts('POST', '/sessions/:sessionId/end', 'end session', schema.endSessionSchema),
    termMs: INTERRUPT_EXPIRY_MS,
    expiry: EXPIRES,
    events: commandEvents(() => ({})),
  },
  'task.stop': {
    ...accepts('POST', '/sessions/:sessionId/tasks/:taskId/stop', 'stop task', schema.taskRunSchema),
    termMs: COMMAND_EXPIRY_MS,
    expiry: EXPIRES,
    events: commandEvents(taskFields),
  },
  'task.wake': {
    ...accepts('POST', '/sessions/:sessionId/tasks/:taskId/wake', 'wake for task', schema.taskRunSchema),
    termMs: COMMAND_EXPIRY_MS,
    expiry: EXPIRES,
    events: commandEvents(taskFields),
  },
  // The two kinds of desired state. Their expired commands are queued again when a runner connects (desired-state.ts).
  'wake-rule.set': {
    ...accepts('PUT', '/sessions/:sessionId/wake-rule', 'set wake rule', schema.setWakeRuleSchema),
    termMs: COMMAND_EXPIRY_MS,
    expiry: EXPIRES,
    events: commandEvents(({ when }) => ({ when })),
  },
  'log-level.set': {
    ...accepts('PUT', '/agents/:agentId/log-level', 'set log level', schema.setLogLevelSchema),
    termMs: COMMAND_EXPIRY_MS,
    expiry: EXPIRES,
    // The command concerns no session.
    events: () => [],
  },
  'permission.decision': {
    ...accepts('POST', '/sessions/:sessionId/requests/:requestId', 'answer request', schema.decidePermissionSchema),
    termMs: COMMAND_EXPIRY_MS,
    expiry: EXPIRES,
    events: commandEvents(({ behavior, optionId, ...request }) => ({
      ...requestFields(request),
      behavior,
      ...(optionId === undefined ? {} : { option_id: optionId }),
    })),
  },
  'question.answer': {
    ...accepts('POST', '/sessions/:sessionId/requests/:requestId', 'answer request', schema.answerQuestionSchema),
    termMs: COMMAND_EXPIRY_MS,
    expiry: EXPIRES,
    events: commandEvents(requestFields),
  },
} as const satisfies { [Type in CommandType]: CommandKind<Type> };

/** Commands that take effect in the transaction that accepts them, with or without a runner. */
export const DECISIONS = {
  'inbox.mark': accepts('POST', '/inbox/marks', 'mark inbox', schema.markInboxSchema),
  'session.arrange': accepts('PUT', '/sessions/:sessionId/arrangement', 'arrange session', schema.arrangeSchema),
  'obligation.waive': accepts(
    'POST',
    '/sessions/:sessionId/obligations/:messageId/waive',
    'waive reply',
    schema.waiveSchema,
  ),
  'obligation.accept': accepts(
    'POST',
    '/sessions/:sessionId/obligations/:messageId/accept',
    'accept reply',
    schema.acceptReplySchema,
  ),
  'agent.retire': accepts('PUT', '/agents/:agentId/retirement', 'retire agent', schema.retireSchema),
  'insights.see': accepts('POST', '/agents/:agentId/insights/seen', 'see insights', schema.seeInsightsSchema),
  'parked.assign': accepts(
    'POST',
    '/agents/:agentId/parked/:position/assign',
    'assign record',
    schema.assignParkedSchema,
  ),
  'parked.discard': accepts(
    'POST',
    '/agents/:agentId/parked/:position/discard',
    'discard record',
    schema.discardParkedSchema,
  ),
} as const satisfies Record<string, Accepted>;

function accepts<const Path extends string, const Body extends Accepted['body']>(
  method: Accepted['method'],
  path: Path,
  action: string,
  body: Body,
) {
  return { method, path, action, body };
}

/** The events that a command's transition appends to its session. */
export function transcriptEvents(command: Command, transition: Transition): AgUiEvent[] {
  return (COMMANDS[command.type] as CommandKind<CommandType>).events(command, transition);
}

const NAME = { queued: CUSTOM.commandQueued, done: CUSTOM.commandDone, failed: CUSTOM.commandFailed } as const;

/** One event when the command is queued and one when it ends. Its delivery is not shown. */
function commandEvents<Type extends CommandType>(
  fieldsOf: (body: CommandBodies[Type]) => Partial<CommandEventValue>,
): CommandKind<Type>['events'] {
  return ({ id, type, body }, { to, reason }) => {
    if (to === 'delivered') return [];
    const fields = fieldsOf(body as CommandBodies[Type]);
    const value: CommandEventValue = { command_id: id, type, ...fields, ...(reason === null ? {} : { reason }) };
    return [{ type: 'CUSTOM', name: NAME[to], value }];
  };
}

function taskFields({ taskId, runId, description }: CommandBodies['task.stop']): Partial<CommandEventValue> {
  return {
    task_id: taskId,
    ...(runId === undefined ? {} : { run_id: runId }),
    ...(description === undefined ? {} : { description }),
  };
}

function requestFields({ requestId, digest, openedPosition }: AnsweredRequest): Partial<CommandEventValue> {
  return {
    request_id: requestId,
    ...(digest === undefined ? {} : { digest }),
    ...(openedPosition === undefined ? {} : { opened_position: openedPosition }),
  };
}

/** The message in the form in which runners report messages, then its delivery. */
function messageEvents({ body }: Command & { type: 'message' }, transition: Transition): AgUiEvent[] {
  const { messageId, text, from, replyTo, attachments, results } = body;
  const { to, reason, clientId = null, waits = false } = transition;
  if (to === 'queued') {
    const interlude = {
      origin: 'interlude' as const,
      delivery: to,
      ...(waits ? { waits } : {}),
      from,
      ...(clientId === null ? {} : { clientId }),
      ...(replyTo === undefined ? {} : { replyTo: [replyTo] }),
      ...(attachments === undefined ? {} : { attachments }),
      ...carriedResults(results),
    };
    return [
      { type: 'TEXT_MESSAGE_START', messageId, role: 'user', name: from.id, metadata: { interlude } },
      { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text },
      { type: 'TEXT_MESSAGE_END', messageId },
    ];
  }
  // A turn that names the message shows that it is done, so `done` adds nothing to `delivered`.
  if (to === 'done' && transition.from === 'delivered') return [];
  const delivery = to === 'done' ? 'delivered' : to;
  const value: MessageDeliveryValue = { message_id: messageId, delivery, ...(reason === null ? {} : { reason }) };
  const lost = to === 'failed' && results !== undefined ? { metadata: { interlude: carriedResults(results) } } : {};
  return [{ type: 'CUSTOM', name: CUSTOM.messageDelivery, value, ...lost }];
}

function carriedResults(results: CommandBodies['message']['results']): Pick<InterludeMetadata, 'carries'> {
  if (results === undefined) return {};
  const taskRunIds = results.map(({ runId }) => runId ?? null);
  const positions = results.map(({ position }) => position);
  return { carries: { taskIds: results.map(({ taskId }) => taskId), taskRunIds, positions } };
}

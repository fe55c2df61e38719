import type { AgUiEvent, CommandEventValue, InterludeMetadata, MessageDeliveryValue } from '@interlude/protocol/ag-ui';
import type { AnsweredRequest, Command, CommandBodies } from '@interlude/protocol/commands';
import { CUSTOM } from '@interlude/protocol/event-fields';

/** What a command leaves in its session's transcript. */
export type CommandMoment = 'queued' | 'delivered' | 'done' | 'failed';

/**
 * The message itself, in the form in which a runner reports one, marked as queued.
 *
 * @param waits no runner is connected
 */
export function messageEvents(
  { body }: Command & { type: 'message' },
  clientId: string | null,
  waits: boolean,
): AgUiEvent[] {
  const { messageId, text, from, replyTo, attachments, results } = body;
  const interlude = {
    origin: 'interlude' as const,
    delivery: 'queued' as const,
    ...(waits ? { waits } : {}),
    from,
    ...(clientId === null ? {} : { clientId }),
    ...(replyTo === undefined ? {} : { replyTo: [replyTo] }),
    ...(attachments === undefined ? {} : { attachments }),
    ...carrying(results),
  };
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'user', name: from.id, metadata: { interlude } },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text },
    { type: 'TEXT_MESSAGE_END', messageId },
  ];
}

/** @returns null if the transcript has nothing to say of it */
export function momentEvent(command: Command, moment: CommandMoment, reason: string | null): AgUiEvent | null {
  const why = reason === null ? {} : { reason };
  if (command.type === 'message') {
    // A message is done when a turn names it, and that is an event of its own.
    const delivery = moment === 'done' ? 'delivered' : moment;
    const value: MessageDeliveryValue = { message_id: command.body.messageId, delivery, ...why };
    const { results } = command.body;
    const isLost = moment === 'failed' && results !== undefined;
    const about = isLost ? { metadata: { interlude: carrying(results) } } : {};
    return { type: 'CUSTOM', name: CUSTOM.messageDelivery, value, ...about };
  }
  // It was on its way before: nothing new to tell.
  if (moment === 'delivered') return null;
  const value: CommandEventValue = { command_id: command.id, type: command.type, ...aboutOf(command), ...why };
  return { type: 'CUSTOM', name: NAME[moment], value };
}

function carrying(results: CommandBodies['message']['results']): Pick<InterludeMetadata, 'carries'> {
  if (results === undefined) return {};
  const taskRunIds = results.map(({ runId }) => runId ?? null);
  const positions = results.map(({ position }) => position);
  return { carries: { taskIds: results.map(({ taskId }) => taskId), taskRunIds, positions } };
}

const NAME = { queued: CUSTOM.commandQueued, done: CUSTOM.commandDone, failed: CUSTOM.commandFailed } as const;

function aboutOf(command: Command): Partial<CommandEventValue> {
  switch (command.type) {
    case 'task.stop':
    case 'task.wake': {
      const { taskId, runId, description } = command.body;
      return {
        task_id: taskId,
        ...(runId === undefined ? {} : { run_id: runId }),
        ...(description === undefined ? {} : { description }),
      };
    }
    case 'permission.decision':
      return {
        ...requestOf(command.body),
        behavior: command.body.behavior,
        ...(command.body.optionId === undefined ? {} : { option_id: command.body.optionId }),
      };
    case 'wake-rule.set':
      return { when: command.body.when };
    case 'question.answer':
      return requestOf(command.body);
    default:
      return {};
  }
}

function requestOf({ requestId, digest, openedPosition }: AnsweredRequest): Partial<CommandEventValue> {
  return {
    request_id: requestId,
    ...(digest === undefined ? {} : { digest }),
    ...(openedPosition === undefined ? {} : { opened_position: openedPosition }),
  };
}

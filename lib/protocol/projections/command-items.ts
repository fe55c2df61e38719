import { customValue, pick, pickId, pickText, pickTime, readRequestOptions } from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import type { RequestAnswer, RequestItem } from '../read-models';
import { answerDeadline } from '../time';
import type { ItemDraft } from './item-draft';
import type { EventEntry } from './placement';

/*
 * Commands and requests in a transcript: the delivery of a message appears on the message, the answer to a request on the
 * request, and every other command as one line with its outcome.
 */

type State = RequestAnswer['state'];

export function foldDelivery(draft: ItemDraft, { event }: EventEntry): void {
  const value = customValue(event);
  const id = pickId(value, 'message_id', 'messageId');
  const message = draft.find('message', id);
  const delivery = value.delivery;
  if (message === undefined || (delivery !== 'queued' && delivery !== 'delivered' && delivery !== 'failed')) return;
  draft.put({ ...message, delivery, deliveryReason: pickText(value, 'reason') });
}

export function foldCommand(state: State) {
  return (draft: ItemDraft, entry: EventEntry): void => {
    const value = customValue(entry.event);
    const commandId = pickId(value, 'command_id', 'commandId');
    if (commandId === null) return;
    const requestId = pickId(value, 'request_id', 'requestId');
    const reason = pickText(value, 'reason');
    const request = draft.find('request', requestId);
    if (request !== undefined && answersRequest(request, commandId, value)) {
      const decided = value.behavior === 'allow' || value.behavior === 'deny' ? value.behavior : null;
      const behavior = decided ?? request.answer?.behavior ?? null;
      const optionId = pickText(value, 'option_id');
      const choice = optionId === null ? {} : { optionId };
      draft.put({ ...request, answer: { commandId, behavior, ...choice, state, reason } });
      return;
    }
    const id = `command:${commandId}`;
    const known = draft.find('notice', id);
    const type = pickText(value, 'type') ?? known?.command?.type ?? '';
    const taskId = pickId(value, 'task_id', 'taskId') ?? known?.command?.taskId ?? null;
    const texts = Object.hasOwn(COMMAND_TEXTS, type) ? COMMAND_TEXTS[type] : undefined;
    const name = type.startsWith('task.') ? (pickText(value, 'description') ?? taskId) : null;
    const turnsOff = type === 'wake-rule.set' && value.when === 'never';
    const line = (turnsOff ? WAKE_RULE_OFF : (texts ?? OTHER_COMMAND))[state] + (name === null ? '' : `: ${name}`);
    draft.put({
      id,
      position: known?.position ?? entry.position,
      at: known?.at ?? entry.occurredAt,
      kind: 'notice',
      text: reason === null ? `${line}.` : `${line} (${reason}).`,
      tone: state === 'failed' ? 'error' : 'info',
      code: 'command',
      command: { id: commandId, type, state, taskId },
    });
  };
}

/**
 * True if the command answers the request. The first answer counts until it fails, because the sender of a later answer
 * had not seen it.
 */
function answersRequest(item: RequestItem, commandId: string, value: Record<string, unknown>): boolean {
  const { answer } = item;
  const [openedPosition, digest] = [pickText(value, 'opened_position'), pickText(value, 'digest')];
  // An answer to an earlier request with this id. Old events have no position, and some readers see no digest.
  if (openedPosition !== null && openedPosition !== item.openedPosition) return false;
  if (digest !== null && digest !== item.digest) return false;
  return answer === null || answer.commandId === commandId || answer.state === 'failed';
}

const OTHER_COMMAND: Record<State, string> = {
  queued: 'A command was sent to the agent',
  done: 'The agent carried out a command',
  failed: 'A command failed',
};

const WAKE_RULE_OFF: Record<State, string> = {
  queued: 'Turning off wake-ups after background commands',
  done: 'The agent no longer wakes when a background command ends',
  failed: 'Wake-ups after background commands could not be turned off',
};

const COMMAND_TEXTS: Record<string, Record<State, string> | undefined> = {
  interrupt: {
    queued: 'The agent was asked to stop what it is doing',
    done: 'The interrupt reached the agent',
    failed: 'The agent could not be interrupted',
  },
  'session.end': {
    queued: 'The session was asked to end',
    done: 'The runner began to end the session',
    failed: 'The session could not be ended',
  },
  'task.stop': {
    queued: 'A task was asked to stop',
    done: 'A task was stopped',
    failed: 'A task could not be stopped',
  },
  'task.wake': {
    queued: 'The agent was asked to wake for a task',
    done: 'The agent was woken for a task',
    failed: 'The agent could not be woken for a task',
  },
  'wake-rule.set': {
    queued: 'Turning on wake-ups after background commands',
    done: 'The agent now wakes when a background command ends',
    failed: 'Wake-ups after background commands could not be turned on',
  },
  'permission.decision': {
    queued: 'A permission request was answered',
    done: 'The decision reached the agent',
    failed: 'The decision did not reach the agent',
  },
  'question.answer': {
    queued: 'A question was answered',
    done: 'The answer reached the agent',
    failed: 'The answer did not reach the agent',
  },
};

const OUTCOMES = ['allowed', 'denied', 'answered', 'expired', 'cancelled'] as const;

export function foldOpened(draft: ItemDraft, entry: EventEntry): void {
  const value = customValue(entry.event);
  const id = pickId(value, 'request_id', 'requestId');
  if (id === null) return;
  const known = draft.find('request', id);
  // By position, because some readers see no digest.
  if (known !== undefined && known.openedPosition === pickText(value, 'opened_position')) {
    // A repetition of an unchanged request can only extend its deadline.
    draft.put({ ...known, expiresAt: answerDeadline(pickTime(value, 'expires_at', 'expiresAt'), entry) });
    return;
  }
  const replaced = draft.find('request', readInterlude(entry.event).replaces ?? null);
  if (known !== undefined && known !== replaced) draft.replace(known, superseded(known, entry));
  const request = requestItem(id, entry);
  if (replaced === undefined) draft.put(request);
  else {
    const { position, at, receivedAt } = replaced;
    draft.replace(replaced, { ...request, position, at, receivedAt });
  }
}

/** The item of a newly opened request. */
export function requestItem(id: string, entry: EventEntry): RequestItem {
  const value = customValue(entry.event);
  const toolName = pickText(value, 'tool_name', 'toolName');
  const options = value.kind === 'question' ? [] : readRequestOptions(value.options);
  return {
    id,
    position: entry.position,
    at: entry.occurredAt,
    receivedAt: entry.receivedAt,
    kind: 'request',
    requestKind: value.kind === 'question' ? 'question' : 'permission',
    toolCallId: pickId(value, 'tool_use_id', 'toolCallId'),
    toolName,
    title: pickText(value, 'title') ?? (toolName === null ? 'The agent asks' : `Allow ${toolName}?`),
    input: pick(value, 'input') ?? null,
    outcome: null,
    message: null,
    resolvedAt: null,
    ...(options.length === 0 ? {} : { options }),
    expiresAt: answerDeadline(pickTime(value, 'expires_at', 'expiresAt'), entry),
    digest: pickText(value, 'digest'),
    openedPosition: pickText(value, 'opened_position'),
    answer: null,
  };
}

export function foldResolved(draft: ItemDraft, entry: EventEntry): void {
  const value = customValue(entry.event);
  const item = draft.find('request', pickId(value, 'request_id', 'requestId'));
  if (item === undefined) return;
  const outcome = OUTCOMES.find((known) => known === value.outcome) ?? 'unknown';
  draft.put({ ...item, outcome, message: pickText(value, 'message'), resolvedAt: entry.occurredAt });
}

/** A request whose id was reused. It stays unchanged under an id that no answer can name. */
function superseded(item: RequestItem, entry: EventEntry): RequestItem {
  const id = `${item.id}@${item.position}`;
  // A live reader cancelled the request when its turn ended; a reload cancels it only afterwards. Both must give the
  // same result.
  const isAsLeftOpen = item.outcome === 'cancelled' && item.message === null;
  if (item.outcome !== null && !isAsLeftOpen) return { ...item, id };
  const message = 'The agent replaced this request.';
  return { ...item, id, outcome: 'cancelled', message, resolvedAt: entry.occurredAt };
}

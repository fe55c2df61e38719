import { customValue, pick, pickId, pickText, pickTime, readRequestOptions } from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import type { RequestAnswer, RequestItem } from '../read-models';
import { answerDeadline } from '../time';
import type { ItemDraft } from './item-draft';
import type { EventEntry } from './placement';

/**
 * How a transcript shows what people ask of an agent: the delivery of a message on the message, the answer to a request
 * on the request, everything else as one line that says what became of it.
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
    const asked = draft.find('request', requestId);
    if (asked !== undefined && isItsAnswer(asked, commandId, value)) {
      const said = value.behavior === 'allow' || value.behavior === 'deny' ? value.behavior : null;
      const behavior = said ?? asked.answer?.behavior ?? null;
      const optionId = pickText(value, 'option_id');
      const choice = optionId === null ? {} : { optionId };
      draft.put({ ...asked, answer: { commandId, behavior, ...choice, state, reason } });
      return;
    }
    const id = `command:${commandId}`;
    const known = draft.find('notice', id);
    const type = pickText(value, 'type') ?? known?.command?.type ?? '';
    const taskId = pickId(value, 'task_id', 'taskId') ?? known?.command?.taskId ?? null;
    const words = Object.hasOwn(WORDS, type) ? WORDS[type] : undefined;
    const name = type.startsWith('task.') ? (pickText(value, 'description') ?? taskId) : null;
    const isOff = type === 'wake-rule.set' && value.when === 'never';
    const what = (isOff ? NOT_WOKEN : (words ?? OTHER))[state] + (name === null ? '' : `: ${name}`);
    draft.put({
      id,
      position: known?.position ?? entry.position,
      at: known?.at ?? entry.occurredAt,
      kind: 'notice',
      text: reason === null ? `${what}.` : `${what} (${reason}).`,
      tone: state === 'failed' ? 'error' : 'info',
      code: 'command',
      command: { id: commandId, type, state, taskId },
    });
  };
}

/** The first answer stands until it fails: anyone who answers again had not seen the first one. */
function isItsAnswer(item: RequestItem, commandId: string, value: Record<string, unknown>): boolean {
  const { answer } = item;
  const [openedPosition, digest] = [pickText(value, 'opened_position'), pickText(value, 'digest')];
  // It was meant for an earlier request under this id. Old events name no position, some readers see no digest.
  if (openedPosition !== null && openedPosition !== item.openedPosition) return false;
  if (digest !== null && digest !== item.digest) return false;
  return answer === null || answer.commandId === commandId || answer.state === 'failed';
}

const OTHER: Record<State, string> = {
  queued: 'Something was asked of the agent',
  done: 'The agent did what was asked of it',
  failed: 'What was asked of the agent failed',
};

const NOT_WOKEN: Record<State, string> = {
  queued: 'The agent is to be woken no more when a background command ends',
  done: 'The agent is woken no more when a background command ends',
  failed: 'That the agent is woken no more could not be set',
};

const WORDS: Record<string, Record<State, string> | undefined> = {
  interrupt: {
    queued: 'The agent was asked to stop what it is doing',
    done: 'The interrupt reached the agent',
    failed: 'The agent could not be interrupted',
  },
  'session.end': {
    queued: 'The session was asked to end',
    done: 'The runner ends the session',
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
    queued: 'The agent is to be woken when a background command ends',
    done: 'The agent is woken from now on when a background command ends',
    failed: 'That the agent is woken when a background command ends could not be set',
  },
  'permission.decision': {
    queued: 'A permission was decided',
    done: 'The decision reached the agent',
    failed: 'The decision did not reach the agent',
  },
  'question.answer': {
    queued: 'A question was answered',
    done: 'The answer reached the agent',
    failed: 'The answer did not reach the agent',
  },
};

/** How a transcript shows what an agent asks of people, and what became of it. */

const OUTCOMES = ['allowed', 'denied', 'answered', 'expired', 'cancelled'] as const;

export function foldOpened(draft: ItemDraft, entry: EventEntry): void {
  const value = customValue(entry.event);
  const id = pickId(value, 'request_id', 'requestId');
  if (id === null) return;
  const known = draft.find('request', id);
  // by position, because some readers see no digest
  if (known !== undefined && known.openedPosition === pickText(value, 'opened_position')) {
    // Told again unchanged, it may only wait longer.
    draft.put({ ...known, expiresAt: answerDeadline(pickTime(value, 'expires_at', 'expiresAt'), entry) });
    return;
  }
  const replaced = draft.find('request', readInterlude(entry.event).replaces ?? null);
  if (known !== undefined && known !== replaced) draft.replace(known, superseded(known, entry));
  const asked = requestItem(id, entry);
  if (replaced === undefined) draft.put(asked);
  else draft.replace(replaced, { ...asked, position: replaced.position, at: replaced.at });
}

/** A request as it is asked. */
export function requestItem(id: string, entry: EventEntry): RequestItem {
  const value = customValue(entry.event);
  const toolName = pickText(value, 'tool_name', 'toolName');
  const options = value.kind === 'question' ? [] : readRequestOptions(value.options);
  return {
    id,
    position: entry.position,
    at: entry.occurredAt,
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

/** A request whose id now asks something else. It stays as it was asked, under an id that no answer can name. */
function superseded(item: RequestItem, entry: EventEntry): RequestItem {
  const id = `${item.id}@${item.position}`;
  // live, the end of its turn has cancelled it before this; reloaded, that happens after: the result must be the same
  const isAsLeftOpen = item.outcome === 'cancelled' && item.message === null;
  if (item.outcome !== null && !isAsLeftOpen) return { ...item, id };
  const message = 'The agent asked anew under the same id.';
  return { ...item, id, outcome: 'cancelled', message, resolvedAt: entry.occurredAt };
}

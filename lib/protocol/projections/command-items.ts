import { customValue, pickId, pickText } from '../event-fields';
import type { RequestAnswer, RequestItem } from '../read-models';
import type { EventEntry } from './event-entry';
import type { ItemDraft } from './item-draft';

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

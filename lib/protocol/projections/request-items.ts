import { customValue, pick, pickId, pickText, pickTime, readRequestOptions } from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import type { RequestItem } from '../read-models';
import { answerDeadline } from '../time';
import type { EventEntry } from './event-entry';
import type { ItemDraft } from './item-draft';

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

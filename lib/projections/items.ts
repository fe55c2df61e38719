import { type AgUiEvent, CUSTOM } from '@/lib/protocol/ag-ui';
import { answerBy } from '@/lib/protocol/answer-by';
import { spanOf } from '@/lib/protocol/duration';
import type {
  Item,
  MessageItem,
  NoticeItem,
  ReasoningItem,
  RequestItem,
  TaskEnd,
  ToolCallItem,
} from '@/lib/protocol/read-models';
import { PARKING_CODES, type RejectionCode } from '@/lib/protocol/rejections';
import { foldCommand, foldDelivery } from './command-items';
import type { EventEntry } from './event-entry';
import {
  contentText,
  customName,
  customValue,
  inputUserMessages,
  pick,
  pickNumber,
  pickText,
  pickTime,
  stringList,
  taskEventId,
  textField,
} from './event-fields';
import { grown, withCut } from './grown';
import { interludeOf } from './interlude-metadata';
import { ItemDraft, type ShownItems } from './item-draft';
import { parsedArgs } from './parsed-args';
import { normaliseTaskEnd, taskEndTold } from './task-status';

/**
 * The items of one turn (or of one subagent), from the events that stand in it.
 *
 * Every fold here is idempotent where a row may come again, and "whole" content replaces: a client that resumes in the
 * middle of a message ends with the right text.
 *
 * @param outside the items are those of a `none` turn
 */
export function foldItems(items: readonly Item[], entries: readonly EventEntry[], outside = false): Item[] {
  return foldShown({ items: [...items] }, entries, outside).items;
}

/**
 * The same, with how many items are not shown: at most MAX_TURN_ITEMS are, of at most MAX_TURN_TEXT, the newest and
 * requests before them. Of each streamed text the beginning is, up to MAX_ITEM_TEXT.
 */
export function foldShown(shown: ShownItems, entries: readonly EventEntry[], outside: boolean): ShownItems {
  const fold = new ShownFold(shown, outside);
  for (const entry of entries) fold.take(entry);
  return fold.shown();
}

/** The same event by event, for who gives others a turn between them. */
export class ShownFold {
  readonly #draft: ItemDraft;
  readonly #outside: boolean;
  readonly #callIds = new Set<string>();

  constructor(shown: ShownItems, outside: boolean) {
    this.#draft = new ItemDraft(shown);
    this.#outside = outside;
  }

  take(entry: EventEntry): void {
    const { event } = entry;
    // In a turn the error is the turn's own; outside any it needs a line.
    if (this.#outside && event.type === 'RUN_ERROR')
      notice(this.#draft, entry, { text: textField(event, 'message') ?? 'The run failed.', tone: 'error', code: null });
    const [folds, name] = event.type === 'CUSTOM' ? [CUSTOM_FOLD, customName(event) ?? ''] : [FOLD, event.type];
    const fold = Object.hasOwn(folds, name) ? folds[name] : undefined;
    fold?.(this.#draft, entry);
    if (event.type.endsWith('_MESSAGE_CHUNK')) this.#endChunk(event);
    if (ADDS_ARGS.has(event.type)) this.#callIds.add(String(event.toolCallId));
  }

  /** Nobody tells the end of a chunk: a person's is there with it, outside of any turn every one is. */
  #endChunk(event: AgUiEvent): void {
    const kind = event.type === 'TEXT_MESSAGE_CHUNK' ? 'message' : 'reasoning';
    const item: TextItem | undefined = this.#draft.find(kind, textField(event, 'messageId'));
    const isWhole =
      this.#outside ||
      interludeOf(event).ofSnapshot !== undefined ||
      (item?.kind === 'message' && item.role === 'user');
    if (item !== undefined && isWhole) this.#draft.put({ ...item, streaming: false });
  }

  /** Reads the arguments of calls, once all of their pieces are there and not at each: those of one call a step. */
  *readArgs(): Generator<void> {
    for (const id of this.#callIds) {
      this.#callIds.delete(id);
      const call = this.#draft.find('tool-call', id);
      if (call !== undefined) this.#draft.put({ ...call, args: parsedArgs(call.argsText) });
      yield;
    }
  }

  shown(): ShownItems {
    for (const _ of this.readArgs());
    return this.#draft.shown();
  }
}

type Fold = (draft: ItemDraft, entry: EventEntry) => void;

function base(entry: EventEntry, id: string) {
  return { id, position: entry.position, at: entry.occurredAt };
}

function messageRole(role: string | null): MessageItem['role'] {
  return role === 'user' ? 'user' : role === 'system' || role === 'developer' ? 'system' : 'assistant';
}

type TextItem = MessageItem | ReasoningItem;

/** `start` begins the text anew, also where the item is known; otherwise the event's delta is added. */
const text =
  (kind: TextItem['kind'], start: boolean): Fold =>
  (draft, entry) => {
    const { event } = entry;
    const id = textField(event, 'messageId');
    if (id === null) return;
    const known: TextItem | undefined = draft.find(kind, id);
    if (known === undefined && draft.isCut && !mayBegin(event)) return;
    const begun: TextItem = known ?? {
      ...base(entry, id),
      ...(kind === 'message'
        ? { kind, role: messageRole(textField(event, 'role')), name: textField(event, 'name'), ...NOT_SENT }
        : { kind }),
      text: '',
      streaming: true,
    };
    const told = start ? withCut({ ...begun, text: '' }, 0) : grown(begun, 'text', entry);
    const next: TextItem = { ...told, streaming: true };
    if (next.kind === 'message') sayDelivery(next, event);
    draft.put(next);
  };

const endOf =
  (kind: 'message' | 'reasoning'): Fold =>
  (draft, entry) => {
    const item: TextItem | undefined = draft.find(kind, textField(entry.event, 'messageId'));
    if (item === undefined) return;
    const next: TextItem = { ...item, streaming: false };
    if (next.kind === 'message') sayDelivery(next, entry.event);
    draft.put(next);
  };

const NOT_SENT = { delivery: null, deliveryReason: null, replyTo: [], clientId: null } satisfies Partial<MessageItem>;

/** What an event of a message says of its way: that it is queued, or what it answers. */
function sayDelivery(message: MessageItem, event: AgUiEvent): void {
  const { delivery, replyTo, clientId } = interludeOf(event);
  if (delivery === 'queued') message.delivery ??= 'queued';
  if (typeof clientId === 'string') message.clientId = clientId;
  if (replyTo !== undefined) message.replyTo = stringList(replyTo);
}

function tool(draft: ItemDraft, entry: EventEntry, change: (call: ToolCallItem) => ToolCallItem): void {
  const id = textField(entry.event, 'toolCallId');
  if (id === null) return;
  const known = draft.find('tool-call', id);
  if (known === undefined && draft.isCut && !mayBegin(entry.event)) return;
  const call: ToolCallItem = known ?? {
    ...base(entry, id),
    kind: 'tool-call',
    name: textField(entry.event, 'toolCallName') ?? 'tool',
    args: null,
    argsText: '',
    result: null,
    status: 'running',
    endedAt: null,
  };
  draft.put(change(call));
}

const addArgs: Fold = (draft, entry) => tool(draft, entry, (call) => grown(call, 'argsText', entry));

/** Whether what an event is about may begin with it: else it is one of those that are not shown any more. */
function mayBegin(event: AgUiEvent): boolean {
  return /_(START|CHUNK)$/.test(event.type) && typeof interludeOf(event).ofSnapshot?.turnId !== 'string';
}

const ADDS_ARGS: ReadonlySet<string> = new Set(['TOOL_CALL_ARGS', 'TOOL_CALL_CHUNK']);

const FOLD: Record<string, Fold | undefined> = {
  TEXT_MESSAGE_START: text('message', true),
  TEXT_MESSAGE_CONTENT: text('message', false),
  TEXT_MESSAGE_CHUNK: text('message', false),
  TEXT_MESSAGE_END: endOf('message'),
  REASONING_MESSAGE_START: text('reasoning', true),
  REASONING_MESSAGE_CONTENT: text('reasoning', false),
  REASONING_MESSAGE_CHUNK: text('reasoning', false),
  REASONING_MESSAGE_END: endOf('reasoning'),
  TOOL_CALL_START: (draft, entry) =>
    tool(draft, entry, (call) => ({
      ...withCut(call, 0),
      name: textField(entry.event, 'toolCallName') ?? call.name,
      args: null,
      argsText: '',
      result: null,
      status: 'running',
      endedAt: null,
    })),
  TOOL_CALL_ARGS: addArgs,
  TOOL_CALL_CHUNK: addArgs,
  TOOL_CALL_END: (draft, entry) =>
    tool(draft, entry, (call) => {
      const result = pick(entry.event, 'result');
      return result === undefined ? call : ended(call, entry, contentText(result));
    }),
  TOOL_CALL_RESULT: (draft, entry) =>
    tool(draft, entry, (call) => ended(call, entry, contentText(entry.event.content))),
  RUN_STARTED: (draft, entry) => {
    for (const { id, text } of inputUserMessages(entry.event)) {
      if (draft.find('message', id) !== undefined) continue;
      draft.put({
        ...base(entry, id),
        kind: 'message',
        role: 'user',
        name: null,
        text,
        streaming: false,
        ...NOT_SENT,
      });
    }
  },
};

function ended(call: ToolCallItem, entry: EventEntry, result: string): ToolCallItem {
  const failed = entry.event.isError === true || entry.event.error !== undefined;
  return { ...call, result, status: failed ? 'failed' : 'completed', endedAt: entry.occurredAt };
}

type NoticeFields = Pick<NoticeItem, 'text' | 'tone' | 'code' | 'ofSessionId'>;

function notice(draft: ItemDraft, entry: EventEntry, fields: NoticeFields): void {
  const id = `notice:${entry.position}`;
  if (draft.find('notice', id) === undefined)
    draft.put({ ...base(entry, id), kind: 'notice', ...fields, command: null });
}

function taskItem(draft: ItemDraft, entry: EventEntry, phase: 'started' | TaskEnd): void {
  const id = taskEventId(entry.event);
  if (id === null) return;
  const runId = pickText(customValue(entry.event), 'run_id', 'runId');
  const { reportedBy } = interludeOf(entry.event);
  draft.put({ ...base(entry, id), kind: 'task', runId, phase, ...(reportedBy === undefined ? {} : { reportedBy }) });
}

const OUTCOMES = ['allowed', 'denied', 'answered', 'expired', 'cancelled'] as const;

const CUSTOM_FOLD: Record<string, Fold | undefined> = {
  [CUSTOM.taskStarted]: (draft, entry) => taskItem(draft, entry, 'started'),
  [CUSTOM.taskCompleted]: (draft, entry) => taskItem(draft, entry, taskEndTold(entry.event) ?? 'completed'),
  [CUSTOM.requestOpened]: (draft, entry) => {
    const value = customValue(entry.event);
    const id = pickText(value, 'request_id', 'requestId');
    if (id === null) return;
    const digest = pickText(value, 'digest');
    const known = draft.find('request', id);
    if (known !== undefined) {
      if (known.digest === digest) {
        // Told again as it was, it may wait longer.
        draft.put({ ...known, expiresAt: answerBy(pickTime(value, 'expires_at', 'expiresAt'), entry) });
        return;
      }
      draft.replace(known, superseded(known, entry));
    }
    const toolName = pickText(value, 'tool_name', 'toolName');
    draft.put({
      ...base(entry, id),
      kind: 'request',
      requestKind: value.kind === 'question' ? 'question' : 'permission',
      toolCallId: pickText(value, 'tool_use_id', 'toolCallId'),
      toolName,
      title: pickText(value, 'title') ?? (toolName === null ? 'The agent asks' : `Allow ${toolName}?`),
      input: pick(value, 'input') ?? null,
      outcome: null,
      message: null,
      resolvedAt: null,
      expiresAt: answerBy(pickTime(value, 'expires_at', 'expiresAt'), entry),
      digest,
      openedPosition: digest === null ? null : pickText(value, 'opened_position'),
      answer: null,
    });
  },
  [CUSTOM.requestResolved]: (draft, entry) => {
    const value = customValue(entry.event);
    const item = draft.find('request', pickText(value, 'request_id', 'requestId'));
    if (item === undefined) return;
    const outcome = OUTCOMES.find((known) => known === value.outcome) ?? 'unknown';
    draft.put({ ...item, outcome, message: pickText(value, 'message'), resolvedAt: entry.occurredAt });
  },
  [CUSTOM.sessionEnded]: (draft, entry) => {
    const value = customValue(entry.event);
    const code = pickNumber(value, 'exitCode', 'exit_code');
    const reason = pickText(value, 'reason');
    const text = `The agent's process ended${code === null ? '' : ` with exit code ${code}`}${reason === null ? '' : `: ${reason}`}.`;
    notice(draft, entry, { text, tone: code === null || code === 0 ? 'info' : 'error', code: 'session-ended' });
  },
  [CUSTOM.lost]: (draft, entry) => {
    const value = customValue(entry.event);
    const count = pickNumber(value, 'count') ?? 1;
    const reason = pickText(value, 'reason') ?? 'unknown reason';
    const text = `${count} ${count === 1 ? 'record was' : 'records were'} lost here before reaching Interlude (${reason}).`;
    notice(draft, entry, { text, tone: 'warning', code: 'lost' });
  },
  [CUSTOM.quarantined]: (draft, entry) => {
    const value = customValue(entry.event);
    const how = isParked(pickText(value, 'code'))
      ? 'A record is parked until somebody says whose it is'
      : 'A record could not be shown and is kept in quarantine';
    const text = `${how}: ${pickText(value, 'message') ?? 'no reason given'}`;
    notice(draft, entry, { text, tone: 'warning', code: 'quarantined' });
  },
  [CUSTOM.taskElsewhere]: (draft, entry) => {
    const value = customValue(entry.event);
    const ofSessionId = pickText(value, 'session_id');
    const id = pickText(value, 'task_id');
    if (ofSessionId === null || id === null || value.again === true) return;
    const end = normaliseTaskEnd(pickText(value, 'status')) ?? 'completed';
    const text = `Tells of the task “${pickText(value, 'description') ?? id}” (${end}), which stands in the`;
    notice(draft, entry, { text, tone: 'info', code: 'task-elsewhere', ofSessionId });
  },
  [CUSTOM.parkedAssigned]: (draft, entry) => settled(draft, entry, 'parked-assigned'),
  [CUSTOM.parkedDiscarded]: (draft, entry) => settled(draft, entry, 'parked-discarded'),
  [CUSTOM.messageDelivery]: foldDelivery,
  [CUSTOM.commandQueued]: foldCommand('queued'),
  [CUSTOM.commandDone]: foldCommand('done'),
  [CUSTOM.commandFailed]: foldCommand('failed'),
  [CUSTOM.obligationWaived]: (draft, entry) => {
    const value = customValue(entry.event);
    const [reason, about, by] = [pickText(value, 'reason'), pickText(value, 'about'), pickText(value, 'by')];
    const what = about === null ? 'a message' : `“${about}”`;
    const text = `The reply to ${what} was waived${by === null ? '' : ` by ${by}`}${reason === null ? '' : `: ${reason}`}.`;
    notice(draft, entry, { text, tone: 'info', code: 'waived' });
  },
  [CUSTOM.runnerAway]: (draft, entry) => {
    const value = customValue(entry.event);
    const silentMs = entry.occurredAt - (pickTime(value, 'last_heard_at') ?? entry.occurredAt);
    const text =
      value.agent_goes_on === true
        ? `Nobody watches the terminal any more, last heard of ${spanOf(silentMs)} before this. The agent goes on there, unseen.`
        : `The runner has gone, last heard of ${spanOf(silentMs)} before this. How this went on is not known.`;
    notice(draft, entry, { text, tone: 'warning', code: 'runner-away' });
  },
  [CUSTOM.runnerBack]: (draft, entry) => {
    const awayMs = entry.occurredAt - (pickTime(customValue(entry.event), 'away_since') ?? entry.occurredAt);
    notice(draft, entry, { text: `The runner is back after ${spanOf(awayMs)}.`, tone: 'info', code: 'runner-back' });
  },
  [CUSTOM.notice]: (draft, entry) => {
    const value = customValue(entry.event);
    const tone = value.tone === 'error' || value.tone === 'warning' ? value.tone : 'info';
    notice(draft, entry, { text: pickText(value, 'text') ?? '', tone, code: null });
  },
};

/** A request whose id asks something else now. It stays as it was asked, under a name that nobody answers to. */
function superseded(item: RequestItem, entry: EventEntry): RequestItem {
  const id = `${item.id}@${item.position}`;
  // live, the end of its turn has cancelled it before this; reloaded, that comes behind: it must make no difference
  const isAsLeftOpen = item.outcome === 'cancelled' && item.message === null;
  if (item.outcome !== null && !isAsLeftOpen) return { ...item, id };
  const message = 'The agent asked anew under the same id.';
  return { ...item, id, outcome: 'cancelled', message, resolvedAt: entry.occurredAt };
}

function isParked(code: string | null): boolean {
  return PARKING_CODES.has(code as RejectionCode);
}

function settled(draft: ItemDraft, entry: EventEntry, code: 'parked-assigned' | 'parked-discarded'): void {
  const value = customValue(entry.event);
  const [by, from, reason] = ['by', 'reported_by', 'reason'].map((field) => pickText(value, field));
  const home = code === 'parked-assigned' ? pickText(value, 'session_id') : null;
  const task = pickText(value, 'task_id') ?? 'a task';
  const say = (text: string, ofSessionId: string | null = null) =>
    notice(draft, entry, { text, tone: 'info', code, ...(ofSessionId === null ? {} : { ofSessionId }) });
  const here = `What was told here of the task “${task}” was`;
  if (code === 'parked-discarded') say(`${here} discarded by ${by}${reason ? `: ${reason}` : ''}.`);
  else if (home === null)
    say(`What the session ${from} told of the task “${task}” was assigned to this session by ${by}.`, from);
  else if (home === from) say(`${here} assigned to this session by ${by}.`);
  else say(`${here} assigned by ${by} to the`, home);
}

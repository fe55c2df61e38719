import type { AgUiEvent } from '../ag-ui';
import {
  CUSTOM,
  contentText,
  customName,
  customValue,
  idField,
  inputUserMessages,
  parseTaskEnd,
  pick,
  pickId,
  pickNumber,
  pickText,
  pickTime,
  readFileEdits,
  readPlanEntries,
  stringList,
  taskEndOf,
  taskEventId,
} from '../event-fields';
import { type Fields, fieldsOf, textOf } from '../fields';
import { readInterlude } from '../interlude-metadata';
import type { Item, MessageItem, NoticeItem, ReasoningItem, TaskEnd, ToolCallItem } from '../read-models';
import { statedReason } from '../session-predicates';
import { formatSpan } from '../time';
import { PARKING_CODES, type RejectionCode } from '../vocabulary';
import { foldCommand, foldDelivery, foldOpened, foldResolved } from './command-items';
import { ItemDraft, parseArgs, type ShownItems, withCut, withDelta } from './item-draft';
import type { EventEntry } from './placement';

/**
 * Folds the events of one turn, or of one subagent, into items.
 *
 * Ordering: position order. Folds are idempotent where a row may repeat, and `whole` content replaces the text, so a
 * client that resumes within a message ends up with the right text.
 *
 * @param outside true for the items of a `none` turn
 */
export function foldItems(items: readonly Item[], entries: readonly EventEntry[], outside = false): Item[] {
  return foldShownItems({ items: [...items] }, entries, outside).items;
}

/**
 * Like `foldItems`, but counts omitted items. Shows the newest items and older requests, at most MAX_TURN_ITEMS with
 * MAX_TURN_TEXT; a streamed text up to MAX_ITEM_TEXT.
 */
export function foldShownItems(shown: ShownItems, entries: readonly EventEntry[], outside: boolean): ShownItems {
  const fold = new ShownFold(shown, outside);
  for (const entry of entries) fold.apply(entry);
  return fold.shown();
}

/** Like `foldShownItems` event by event, so the caller can yield in between. */
export class ShownFold {
  readonly #draft: ItemDraft;
  readonly #outside: boolean;
  readonly #callIds = new Set<string>();

  constructor(shown: ShownItems, outside: boolean) {
    this.#draft = new ItemDraft(shown);
    this.#outside = outside;
  }

  apply(entry: EventEntry): void {
    const { event } = entry;
    // A turn shows its own error. Outside a turn, the error needs a line.
    if (this.#outside && event.type === 'RUN_ERROR') RUN_FAILED(this.#draft, entry);
    if (event.type === 'TOOL_CALL_START') keepEarlierCall(this.#draft, entry);
    const [folds, name] = event.type === 'CUSTOM' ? [CUSTOM_FOLD, customName(event) ?? ''] : [FOLD, event.type];
    const fold = Object.hasOwn(folds, name) ? folds[name] : undefined;
    fold?.(this.#draft, entry);
    if (event.type.endsWith('_MESSAGE_CHUNK')) this.#endChunk(event);
    if (ADDS_ARGS.has(event.type)) this.#callIds.add(String(event.toolCallId));
  }

  /**
   * Completes a chunked text, which no event ends. A person's message is complete immediately, as is any text outside a
   * turn.
   */
  #endChunk(event: AgUiEvent): void {
    const kind = event.type === 'TEXT_MESSAGE_CHUNK' ? 'message' : 'reasoning';
    const item: TextItem | undefined = this.#draft.find(kind, textOf(event.messageId));
    const isWhole =
      this.#outside ||
      readInterlude(event).ofSnapshot !== undefined ||
      (item?.kind === 'message' && item.role === 'user');
    if (item !== undefined && isWhole) this.#draft.put({ ...item, streaming: false });
  }

  /** Parses the arguments of changed calls once per batch rather than per piece, one call per step. */
  *readArgs(): Generator<void> {
    for (const id of this.#callIds) {
      this.#callIds.delete(id);
      const call = this.#draft.find('tool-call', id);
      if (call !== undefined) this.#draft.put({ ...call, args: parseArgs(call.argsText) });
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

/** Restarts the text if `start` is true, else appends the event's delta. */
const text =
  (kind: TextItem['kind'], start: boolean): Fold =>
  (draft, entry) => {
    const { event } = entry;
    // Messages have no URL, so any id is shown.
    const id = textOf(event.messageId);
    if (id === null) return;
    const known: TextItem | undefined = draft.find(kind, id);
    if (known === undefined && draft.isCut && !mayStartItem(event)) return;
    const before: TextItem = known ?? {
      ...base(entry, id),
      ...(kind === 'message'
        ? { kind, role: messageRole(textOf(event.role)), name: textOf(event.name), ...NO_DELIVERY }
        : { kind }),
      text: '',
      streaming: true,
    };
    const changed = start ? withCut({ ...before, text: '' }, 0) : withDelta(before, 'text', entry);
    const next: TextItem = { ...changed, streaming: true };
    if (next.kind === 'message') applyDelivery(next, event);
    draft.put(next);
  };

const endOf =
  (kind: 'message' | 'reasoning'): Fold =>
  (draft, entry) => {
    const item: TextItem | undefined = draft.find(kind, textOf(entry.event.messageId));
    if (item === undefined) return;
    const next: TextItem = { ...item, streaming: false };
    if (next.kind === 'message') applyDelivery(next, entry.event);
    draft.put(next);
  };

const NO_DELIVERY = {
  delivery: null,
  deliveryReason: null,
  replyTo: [],
  clientId: null,
} satisfies Partial<MessageItem>;

/** Copies delivery, reply targets, client id and attachments from an event to its message. */
function applyDelivery(message: MessageItem, event: AgUiEvent): void {
  const { delivery, replyTo, clientId, attachments = [] } = readInterlude(event);
  if (delivery === 'queued') message.delivery ??= 'queued';
  if (typeof clientId === 'string') message.clientId = clientId;
  if (replyTo !== undefined) message.replyTo = stringList(replyTo);
  if (attachments.length > 0) message.attachments = attachments;
}

function tool(draft: ItemDraft, entry: EventEntry, change: (call: ToolCallItem) => ToolCallItem): void {
  const id = textOf(entry.event.toolCallId);
  if (id === null) return;
  const known = draft.find('tool-call', id);
  if (known === undefined && draft.isCut && !mayStartItem(entry.event)) return;
  const call: ToolCallItem = known ?? {
    ...base(entry, id),
    kind: 'tool-call',
    name: textOf(entry.event.toolCallName) ?? 'tool',
    args: null,
    argsText: '',
    result: null,
    status: 'running',
    endedAt: null,
  };
  draft.put(change(call));
}

/**
 * Keeps a completed call under a new id when another call reuses its id. Snapshots and repeated runs repeat the same
 * call.
 */
function keepEarlierCall(draft: ItemDraft, { event, position }: EventEntry): void {
  const known = draft.find('tool-call', textOf(event.toolCallId));
  if (known === undefined || known.result === null || known.position === position) return;
  const { ofSnapshot, again } = readInterlude(event);
  if (ofSnapshot !== undefined || again === true) return;
  draft.replace(known, { ...known, id: `${known.id}~${known.position}`, args: parseArgs(known.argsText) });
}

const addArgs: Fold = (draft, entry) => tool(draft, entry, (call) => withDelta(call, 'argsText', entry));

/** True if the event may start an item; other events concern an omitted one. */
function mayStartItem(event: AgUiEvent): boolean {
  return /_(START|CHUNK)$/.test(event.type) && typeof readInterlude(event).ofSnapshot?.turnId !== 'string';
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
    tool(draft, entry, ({ edits: _before, ...call }) => ({
      ...withCut(call, 0),
      name: textOf(entry.event.toolCallName) ?? call.name,
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
      return result === undefined ? call : endedCall(call, entry, contentText(result));
    }),
  TOOL_CALL_RESULT: (draft, entry) =>
    tool(draft, entry, (call) => {
      const edits = readFileEdits(entry.event.metadata?.interlude?.edits);
      return { ...endedCall(call, entry, contentText(entry.event.content)), ...(edits.length === 0 ? {} : { edits }) };
    }),
  ACTIVITY_SNAPSHOT: (draft, entry) => {
    const { event } = entry;
    const id = event.activityType === 'plan' ? idField(event, 'messageId') : null;
    const plan = readPlanEntries(fieldsOf(event.content).entries);
    if (id === null || plan === null) return;
    const { position, at } = draft.find('plan', id) ?? base(entry, id);
    const { entries, omitted } = plan;
    draft.put({ kind: 'plan', id, position, at, entries, ...(omitted === 0 ? {} : { omitted }) });
  },
  RUN_STARTED: (draft, entry) => {
    for (const { id, text } of inputUserMessages(entry.event)) {
      if (draft.find('message', id) !== undefined) continue;
      const message = { kind: 'message', role: 'user', name: null, text, streaming: false } as const;
      draft.put({ ...base(entry, id), ...message, ...NO_DELIVERY });
    }
  },
};

function endedCall(call: ToolCallItem, entry: EventEntry, result: string): ToolCallItem {
  const failed = entry.event.isError === true || entry.event.error !== undefined;
  return { ...call, result, status: failed ? 'failed' : 'completed', endedAt: entry.occurredAt };
}

type Notice = Pick<NoticeItem, 'text' | 'tone' | 'code' | 'ofSessionId'>;

/** A notice for an event; none if `describe` returns null. */
const notice =
  (describe: (value: Fields, entry: EventEntry) => Notice | null): Fold =>
  (draft, entry) => {
    const id = `notice:${entry.position}`;
    const content = draft.find('notice', id) === undefined ? describe(customValue(entry.event), entry) : null;
    if (content !== null) draft.put({ ...base(entry, id), kind: 'notice', ...content, command: null });
  };

const RUN_FAILED = notice((_, { event }) => ({
  text: textOf(event.message) ?? 'The run failed.',
  tone: 'error',
  code: null,
}));

function taskItem(
  draft: ItemDraft,
  entry: EventEntry,
  phase: 'started' | TaskEnd,
  id = taskEventId(entry.event),
): void {
  if (id === null) return;
  const runId = pickId(customValue(entry.event), 'run_id', 'runId');
  const { reportedBy } = readInterlude(entry.event);
  draft.put({ ...base(entry, id), kind: 'task', runId, phase, ...(reportedBy === undefined ? {} : { reportedBy }) });
}

/** Names the message that a pending-reply decision concerns, and who decided. */
function replyDecision(value: Record<string, unknown>): { message: string; by: string } {
  const [about, by] = [pickText(value, 'about'), pickText(value, 'by')];
  return { message: about === null ? 'a message' : `“${about}”`, by: by === null ? '' : ` by ${by}` };
}

/** The number of read-only tool calls, as a sentence. */
function readOnlyCallNote(calls: Record<string, unknown>): string {
  const [all, gathering] = [pickNumber(calls, 'all'), pickNumber(calls, 'gathering')];
  if (all === null || gathering === null || all <= 0 || gathering < 0 || gathering > all) return '';
  return ` ${gathering} of ${all} tool calls only read, listed or searched.`;
}

const CUSTOM_FOLD: Record<string, Fold | undefined> = {
  [CUSTOM.taskStarted]: (draft, entry) => taskItem(draft, entry, 'started'),
  [CUSTOM.taskGoesOn]: (draft, entry) => taskItem(draft, entry, 'started', pickId(customValue(entry.event), 'task_id')),
  [CUSTOM.taskCompleted]: (draft, entry) => taskItem(draft, entry, taskEndOf(entry.event) ?? 'completed'),
  [CUSTOM.requestOpened]: foldOpened,
  [CUSTOM.requestResolved]: foldResolved,
  [CUSTOM.sessionEnded]: notice((value) => {
    const code = pickNumber(value, 'exitCode', 'exit_code');
    const reason = statedReason(pickText(value, 'reason')?.replace(/\.$/, '') ?? null);
    const hasCode = reason?.includes(`code ${code}`) === true;
    const how = code === null || hasCode ? '' : ` with exit code ${code}`;
    const ended = `The agent's process ended${how}${reason === null ? '' : `: ${reason}`}.`;
    const text = `${ended}${readOnlyCallNote(fieldsOf(pick(value, 'tool_calls', 'toolCalls')))}`;
    return { text, tone: code === null || code === 0 ? 'info' : 'error', code: 'session-ended' };
  }),
  [CUSTOM.lost]: notice((value) => {
    const count = pickNumber(value, 'count') ?? 1;
    const reason = pickText(value, 'reason') ?? 'unknown reason';
    const text = `${count} ${count === 1 ? 'record was' : 'records were'} lost here before reaching Interlude (${reason}).`;
    return { text, tone: 'warning', code: 'lost' };
  }),
  [CUSTOM.quarantined]: notice((value) => {
    const count = pickNumber(value, 'count');
    if (count !== null) {
      const subject =
        count === 1 ? 'A record from before this session was' : `${count} records from before this session were`;
      return { text: `${subject} rejected.`, tone: 'warning', code: 'quarantined' };
    }
    const how = PARKING_CODES.includes(pickText(value, 'code') as RejectionCode)
      ? 'A record is unassigned'
      : 'A record was rejected';
    const text = `${how}: ${pickText(value, 'message') ?? 'no reason given'}`;
    return { text, tone: 'warning', code: 'quarantined' };
  }),
  [CUSTOM.taskElsewhere]: notice((value) => {
    const ofSessionId = pickText(value, 'session_id');
    const id = pickText(value, 'task_id');
    if (ofSessionId === null || id === null || value.again === true) return null;
    const end = parseTaskEnd(pickText(value, 'status')) ?? 'completed';
    const text = `Reports the task “${pickText(value, 'description') ?? id}” (${end}) of the`;
    return { text, tone: 'info', code: 'task-elsewhere', ofSessionId };
  }),
  [CUSTOM.parkedAssigned]: notice((value) => {
    const [by, from, home] = [pickText(value, 'by'), pickText(value, 'reported_by'), pickText(value, 'session_id')];
    const isElsewhere = home !== null && home !== from;
    const subject = home === null ? `The report by the session ${from}` : 'The report here';
    const where = isElsewhere ? `by ${by} to the` : `to this session by ${by}.`;
    const text = `${subject} about the task “${pickText(value, 'task_id') ?? 'a task'}” was assigned ${where}`;
    const ofSessionId = home === null ? from : isElsewhere ? home : null;
    return { text, tone: 'info', code: 'parked-assigned', ...(ofSessionId === null ? {} : { ofSessionId }) };
  }),
  [CUSTOM.parkedDiscarded]: notice((value) => {
    const [by, reason, task] = [pickText(value, 'by'), pickText(value, 'reason'), pickText(value, 'task_id')];
    const text = `The report here about the task “${task ?? 'a task'}” was discarded by ${by}${reason ? `: ${reason}` : ''}.`;
    return { text, tone: 'info', code: 'parked-discarded' };
  }),
  [CUSTOM.messageDelivery]: foldDelivery,
  [CUSTOM.commandQueued]: foldCommand('queued'),
  [CUSTOM.commandDone]: foldCommand('done'),
  [CUSTOM.commandFailed]: foldCommand('failed'),
  [CUSTOM.obligationWaived]: notice((value) => {
    const reason = pickText(value, 'reason');
    const { message, by } = replyDecision(value);
    const text = `The reply to ${message} was waived${by}${reason === null ? '' : `: ${reason}`}.`;
    return { text, tone: 'info', code: 'waived' };
  }),
  [CUSTOM.obligationAccepted]: notice((value) => {
    const { message, by } = replyDecision(value);
    const text = `A text was accepted as the reply to ${message}${by}.`;
    return { text, tone: 'info', code: 'accepted' };
  }),
  [CUSTOM.runnerAway]: notice((value, { occurredAt }) => {
    const silent = formatSpan(occurredAt - (pickTime(value, 'last_heard_at') ?? occurredAt));
    const text =
      value.agent_goes_on === true
        ? `The runner has gone, last seen ${silent} before this. The agent continues unseen.`
        : `${value.is_silent === true ? 'The agent is silent' : 'The runner has gone'}, last seen ${silent} before this. Later activity is unknown.`;
    return { text, tone: 'warning', code: 'runner-away' };
  }),
  [CUSTOM.runnerBack]: notice((value, { occurredAt }) => {
    const away = formatSpan(occurredAt - (pickTime(value, 'away_since') ?? occurredAt));
    return { text: `The runner is back after ${away}.`, tone: 'info', code: 'runner-back' };
  }),
  [CUSTOM.notice]: notice((value) => {
    const tone = value.tone === 'error' || value.tone === 'warning' ? value.tone : 'info';
    const ofSessionId = pickId(value, 'of_session_id');
    return { text: pickText(value, 'text') ?? '', tone, code: null, ...(ofSessionId === null ? {} : { ofSessionId }) };
  }),
};

import type { FileEdit, PlanEntry } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import type { WireEnd } from '../wire';
import { setBounded } from '../wire';
import type { PartAssembler } from '../writer/part-assembler';
import { hunksOf, planEntry } from '../writer/part-events';
import { SessionWriter, type SessionWriterOptions } from '../writer/session-writer';
import { boundValue } from '../writer/size-limits';
import { idOf, type NativeEvent, parsePromptPart, parseTaskNotices } from './native-event';
import { OpenRequests, type RequestKind } from './requests';
import { type SessionTree, Subagents } from './subagents';
import { isDone, type Message, Turns } from './turns';

const MAX_MESSAGES = 2_000;
const REJECTED = 'The user rejected permission to use this specific tool call.';
/** Events that only repeat others. */
const SILENT = /^(session\.(created|idle|diff)|todo\.updated|session\.next\..*delta)$/;

/** Open work of an earlier process that the session's history does not show. */
export interface EarlierState {
  /** Run left open. */
  runId: string | null;
  requests: readonly string[];
  /** Open part, by OpenCode session. */
  openParts: ReadonlyMap<string, string>;
}

/** A root session of OpenCode with its subagents' sessions: one session of the dashboard. */
export class Conversation {
  readonly root: string;
  readonly writer: SessionWriter;
  readonly requests: OpenRequests;
  readonly #tree: SessionTree;
  readonly #turns: Turns;
  readonly #subagents: Subagents;
  readonly #writers = new Map<string, PartWriter>();
  readonly #messages = new Map<string, Message>();
  /** Log ids of calls, by message and call id. */
  readonly #calls = new Map<string, string>();
  readonly #firstParts = new Map<string, string>();
  #title: string | null = null;
  #retry = '';

  constructor(root: string, tree: SessionTree, options: SessionWriterOptions) {
    this.root = root;
    this.#tree = tree;
    this.writer = new SessionWriter(options);
    this.requests = new OpenRequests(this.writer);
    this.#subagents = new Subagents(this.writer, tree);
    this.#turns = new Turns(this.writer, options.newRunId);
  }

  read({ type, data }: NativeEvent, session: string): void {
    const read = Object.hasOwn(this.#readers, type) ? this.#readers[type] : undefined;
    if (read !== undefined) read(data, session);
    else if (!SILENT.test(type)) this.#custom(type, data, session);
    if (type !== 'session.next.prompted' || this.#messages.size > 0) return;
    this.writer.notice('This session uses version 2 of OpenCode’s interface, which is not supported yet.', 'warning');
  }

  readonly #readers: Record<string, (data: Fields, session: string) => void> = {
    'session.updated': ({ info }, session) => this.#titled(fieldsOf(info), session),
    'session.deleted': (_, session) => this.#deleted(session),
    'session.status': ({ status }, session) => this.status(fieldsOf(status), session),
    'session.error': ({ error }, session) => this.#failed(fieldsOf(error), session),
    'session.compacted': () => this.writer.notice('The conversation was compacted.'),
    'message.updated': ({ info }, session) => this.#message(fieldsOf(info), session),
    'message.part.updated': ({ part }, session) => this.#part(fieldsOf(part), session),
    'message.part.delta': (data, session) => this.#delta(data, session),
    'permission.asked': (data) => this.ask('permission', data),
    'permission.updated': (data) => this.ask('permission', data),
    'permission.replied': (data) => this.#answered(data.requestID ?? data.permissionID, data.reply ?? data.response),
    'question.asked': (data) => this.ask('question', data),
    'question.replied': (data) => this.#answered(data.requestID, 'answers'),
    'question.rejected': (data) => this.#answered(data.requestID, 'reject'),
  };

  /** @param request from its event or from the list of open requests */
  ask(kind: RequestKind, request: Fields): void {
    const session = idOf(request.sessionID) ?? this.root;
    const { messageID, callID } = fieldsOf(request.tool);
    const toolUseId = this.#calls.get(`${messageID} ${callID}`) ?? null;
    const isMain = session === this.root;
    const by = isMain ? null : (this.#tree.get(session)?.title ?? session);
    this.requests.opened(kind, request, { toolUseId, by, isMain });
  }

  /** Handles the server's status of a session. */
  status({ type, message, attempt }: Fields, session: string): void {
    const reason = textOf(message);
    if (type === 'retry' && reason !== null) {
      const retry = `${session} ${attempt} ${reason}`;
      const times = numberOf(attempt) ?? 1;
      if (retry !== this.#retry) {
        this.writer.notice(`The model failed; retrying (attempt ${times}): ${reason}`, 'warning');
      }
      this.#retry = retry;
    }
    if (type === 'idle' && session === this.root) this.#turns.idle();
  }

  /**
   * Handles a restart of the server process: idle sessions get no further events for their open work.
   * @param isIdle true for an idle session of this conversation
   */
  processEnded(isIdle: (session: string) => boolean): void {
    if (isIdle(this.root)) this.#turns.processEnded();
    for (const task of this.writer.openTasks) {
      if (!isIdle(task)) continue;
      this.requests.sessionGone(task);
      this.#subagents.lost(task, 'OpenCode ended during this task; the outcome is unknown.');
    }
  }

  /** True while there is open work that an idle status would end. */
  get hasOpenWork(): boolean {
    return this.#turns.hasOpenWork || this.writer.openTasks.length > 0 || this.requests.hasOpen;
  }

  hasMessage(messageId: string): boolean {
    return this.#turns.has(messageId);
  }

  restore({ runId, requests, openParts }: EarlierState): void {
    this.requests.restore(requests);
    for (const [session, partId] of openParts) this.#writers.get(session)?.resume(partId);
    this.#turns.restore(runId);
  }

  /** Ends everything after the session or the connection is gone. */
  end(end: WireEnd): void {
    this.#turns.release();
    this.writer.end(end);
  }

  #titled({ title, revert }: Fields, session: string): void {
    const name = textOf(title);
    if (session !== this.root) return;
    if (name !== null && name !== this.#title && !name.startsWith('New session - ')) {
      this.#title = name;
      this.writer.custom('opencode:title', { title: truncateText(name, 500) });
    }
    if (typeof revert === 'object' && revert !== null) this.#custom('session.reverted', { revert }, session);
  }

  #deleted(session: string): void {
    this.requests.sessionGone(session);
    if (session === this.root) this.end({ reason: 'the session was deleted in OpenCode', isAsked: true });
    else this.#subagents.ended({ taskId: session, status: 'stopped', result: '' });
  }

  #failed(error: Fields, session: string): void {
    if (session === this.root && textOf(error.name) !== null) this.#turns.failed(error);
  }

  #message(info: Fields, session: string): void {
    const id = idOf(info.id);
    if (id === null) return;
    const known = this.#messages.get(id);
    const role = info.role === 'user' ? 'user' : 'assistant';
    const initial = { isDone: false, usesTools: false, isRejected: false, isOver: false, wasClosedEarly: false };
    const message: Message = known ?? { session, role, ...initial };
    if (known === undefined) setBounded(this.#messages, id, message, MAX_MESSAGES);
    const parentId = idOf(info.parentID);
    if (role === 'user' || parentId === null || message.isOver) return;
    if (session === this.root) this.#turns.agentMessage(message, parentId, info, known === undefined);
    else this.#ofSubagent(message, info);
  }

  #ofSubagent(message: Message, info: Fields): void {
    const { session } = message;
    message.isDone = isDone(info);
    if (!message.isDone) this.#subagents.begin(session, null);
    else if (fieldsOf(info.error).name === 'MessageAbortedError') {
      // The parent session gets no event for this.
      this.requests.sessionGone(session);
      this.#subagents.ended({ taskId: session, status: 'stopped', result: '' });
    }
  }

  #part(part: Fields, session: string): void {
    const message = this.#messages.get(idOf(part.messageID) ?? '');
    // Late repeats, such as pruned outputs, are already in the log.
    if (message?.isOver) return;
    if (message === undefined) this.#custom('part', { type: part.type, id: part.id, message: part.messageID }, session);
    else if (message.role === 'user') this.#parsePromptPart(part, session);
    else if (!this.#partsOf(session).text(part)) {
      const tool = this.#partsOf(session).tool(part);
      if (tool !== null) this.#tool(tool, part, message);
      else if (part.type !== 'step-start') {
        const { id: _, sessionID: __, type, ...fields } = part;
        this.#custom(`${type}`, fields, session);
      }
    }
  }

  #tool(tool: ToolPart, part: Fields, message: Message): void {
    const { session } = message;
    if (fieldsOf(part.metadata).providerExecuted !== true) message.usesTools = true;
    if (tool.result === REJECTED) message.isRejected = true;
    if (tool.callId !== null) setBounded(this.#calls, `${part.messageID} ${tool.callId}`, tool.id, MAX_MESSAGES);
    if (tool.plan !== null && session === this.root) this.writer.plan(`${session}/plan`, tool.plan);
    if (tool.isOver) this.requests.callEnded(session, tool.callId);
    if (tool.tool === 'task') this.#subagentOf(tool);
  }

  #subagentOf({ id, input, metadata, isOver, result, status }: ToolPart): void {
    const child = idOf(metadata.sessionId ?? metadata.sessionID);
    if (child === null || child === this.root || this.#tree.rootOf(child) !== this.root) return;
    this.#subagents.begin(child, { toolUseId: id, input });
    if (!isOver) return;
    const [notice] = parseTaskNotices(result);
    const ended = { taskId: child, status: status === 'error' ? 'failed' : 'completed', result } as const;
    if (notice !== undefined) this.#subagents.ended({ ...notice, taskId: child });
    else if (metadata.background !== true) this.#subagents.ended(ended);
  }

  #parsePromptPart(part: Fields, session: string): void {
    const messageId = idOf(part.messageID) ?? '';
    const prompt = parsePromptPart(part);
    const before = this.#turns.authorOf(messageId);
    const isMain = session === this.root;
    if (prompt.kind === 'task') {
      for (const notice of prompt.notices) this.#subagents.ended(notice);
      const known = before?.kind === 'task' ? before.taskIds : [];
      const taskIds = [...new Set([...known, ...prompt.notices.map(({ taskId }) => taskId)])];
      if (before?.kind !== 'person') this.#turns.promptRead(messageId, { kind: 'task', taskIds });
    } else if (prompt.kind === 'person') {
      const known = before?.kind === 'person' ? before.ids : [];
      const id = prompt.messageId ?? this.#firstPart(messageId, idOf(part.id) ?? messageId);
      if (isMain && !known.includes(id)) this.#turns.promptRead(messageId, { kind: 'person', ids: [...known, id] });
      if (prompt.messageId !== null) this.writer.dashboardMessage(id, prompt.text);
      else this.writer.userMessage(id, prompt.text, isMain ? {} : { taskId: session });
    } else {
      if (before === undefined && isMain) this.#turns.promptRead(messageId, { kind: 'own' });
      if (prompt.kind === 'compaction' && prompt.isAuto) {
        this.writer.notice('The conversation is too long and is being compacted.');
      }
    }
  }

  /** The first text of a message gets the message's id, further texts their own. */
  #firstPart(messageId: string, partId: string): string {
    const first = this.#firstParts.get(messageId) ?? partId;
    setBounded(this.#firstParts, messageId, first, MAX_MESSAGES);
    return first === partId ? messageId : partId;
  }

  #delta(data: Fields, session: string): void {
    const message = this.#messages.get(idOf(data.messageID) ?? '');
    const partId = idOf(data.partID);
    if (message?.role !== 'assistant' || message.isOver || partId === null) return;
    if (typeof data.delta === 'string') this.#partsOf(session).delta(partId, textOf(data.field) ?? 'text', data.delta);
  }

  #answered(requestId: unknown, answer: unknown): void {
    const id = idOf(requestId);
    if (id !== null) this.requests.answered(id, textOf(answer));
  }

  #partsOf(session: string): PartWriter {
    const known = this.#writers.get(session);
    if (known !== undefined) return known;
    const partWriter = new PartWriter(() => this.writer.parts(session === this.root ? null : session));
    setBounded(this.#writers, session, partWriter, MAX_MESSAGES);
    return partWriter;
  }

  #custom(type: string, value: Fields, session: string): void {
    const by = session === this.root ? {} : { task_id: session };
    this.writer.custom(`opencode:${truncateText(type, 100)}`, { ...boundValue(value), ...by });
  }
}

/** Open parts per session. */
const MAX_PARTS = 500;
const KINDS = new Map<unknown, 'text' | 'thought'>([
  ['text', 'text'],
  ['reasoning', 'thought'],
]);
/** Placeholder for text written by an earlier process. No agent emits it, so the full text replaces it. */
const EARLIER_TEXT = '\uffff';

interface ToolPart {
  id: string;
  tool: string;
  callId: string | null;
  status: string;
  input: Fields;
  metadata: Fields;
  /** Output or error. */
  result: string;
  isOver: boolean;
  plan: PlanEntry[] | null;
}

/** Writes the parts of one session: the agent's or a subagent's. */
class PartWriter {
  readonly #parts: () => PartAssembler;
  /** Kinds of the open texts and thoughts. */
  readonly #kinds = new Map<string, 'text' | 'thought'>();

  constructor(parts: () => PartAssembler) {
    this.#parts = parts;
  }

  /** @returns false if the part is neither text nor thought */
  text(part: Fields): boolean {
    const kind = KINDS.get(part.type);
    const id = idOf(part.id);
    if (kind === undefined || id === null) return false;
    const { end } = fieldsOf(part.time);
    const text = typeof part.text === 'string' ? part.text : '';
    this.#parts().setText(kind, id, text);
    if (typeof end === 'number') {
      this.#parts().endText(id);
      this.#kinds.delete(id);
    } else setBounded(this.#kinds, id, kind, MAX_PARTS);
    return true;
  }

  /** Appends to a part. An interrupted part waits for its full text. */
  delta(partId: string, field: string, delta: string): void {
    const kind = this.#kinds.get(partId);
    if (field !== 'text' || kind === undefined || this.#parts().textState(kind, partId) === 'ended') return;
    this.#parts().appendText(kind, partId, delta);
  }

  /** Continues a part of an earlier process. */
  resume(partId: string): void {
    this.delta(partId, 'text', EARLIER_TEXT);
  }

  tool(part: Fields): ToolPart | null {
    const id = idOf(part.id);
    if (part.type !== 'tool' || id === null) return null;
    const state = fieldsOf(part.state);
    const tool = truncateText(textOf(part.tool) ?? 'tool', 200);
    const status = textOf(state.status) ?? 'pending';
    const failed = status === 'error';
    const isOver = failed || status === 'completed';
    const result = textOf(failed ? state.error : state.output) ?? '';
    const input = fieldsOf(state.input);
    const parts = this.#parts();
    parts.startCall(id, tool);
    if (status !== 'pending') {
      parts.setArgs(id, input);
      parts.endCall(id);
    }
    const edits: FileEdit[] = status === 'completed' ? editsOf(tool, state) : [];
    if (isOver) parts.setResult(id, result, { isError: failed, edits });
    const plan = status === 'pending' ? null : planOf(tool, state);
    return {
      id,
      tool,
      callId: idOf(part.callID),
      status,
      input,
      metadata: fieldsOf(state.metadata),
      result,
      isOver,
      plan,
    };
  }
}

/** Edits of a completed call. @see opencode-ai 1.18.33: the tools edit, write, apply_patch */
function editsOf(tool: string, state: Fields): FileEdit[] {
  const input = fieldsOf(state.input);
  const metadata = fieldsOf(state.metadata);
  const { file } = fieldsOf(metadata.filediff);
  const path = textOf(file) ?? textOf(metadata.filepath) ?? textOf(input.filePath) ?? '';
  if (tool === 'edit' && typeof input.oldString === 'string' && typeof input.newString === 'string') {
    return [{ path, before: input.oldString, after: input.newString }];
  }
  // The former content of an overwritten file is unknown.
  if (tool === 'write') {
    return metadata.exists === false && typeof input.content === 'string'
      ? [{ path, before: '', after: input.content }]
      : [];
  }
  return listOf(metadata.files).flatMap((changed) => {
    const { filePath, relativePath, patch, diff } = fieldsOf(changed);
    const text = textOf(patch) ?? textOf(diff);
    return text === null ? [] : [editOfPatch(textOf(filePath) ?? textOf(relativePath) ?? '', text)];
  });
}

/** One edit for all hunks of a unified diff. */
function editOfPatch(path: string, patch: string): FileEdit {
  const hunks = hunksOf(patch);
  const side = (name: 'before' | 'after') => hunks.flatMap((hunk) => hunk[name]).join('\n');
  return { path, before: side('before'), after: side('after') };
}

const STATUSES: ReadonlySet<unknown> = new Set(['pending', 'in_progress', 'completed']);

/** Plan of a `todowrite` call; null for other calls. */
function planOf(tool: string, state: Fields): PlanEntry[] | null {
  const todos = fieldsOf(state.input).todos;
  if (tool !== 'todowrite' || !Array.isArray(todos)) return null;
  return todos
    .map(fieldsOf)
    .filter(({ content, status }) => textOf(content) !== null && STATUSES.has(status))
    .map(({ content, status, priority }) => planEntry(content, status, priority));
}

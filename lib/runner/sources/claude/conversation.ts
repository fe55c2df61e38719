import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { parseJson } from '@interlude/protocol/fields';
import { endsOf, type OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { ClaudeAdapter, type ProcessExit } from '../../adapters/claude/claude-adapter';
import { IN_FLIGHT_CURSORS, type InFlightMessage, withLocalFiles } from '../../host/message-delivery';
import { answeredMessageIds, ReplyAnnotator } from '../../host/pending-replies';
import type { SourceContext } from '../../host/source';
import { noticeEvent } from '../../host/source-commands';
import type { Outbox } from '../../outbox/outbox';
import type { Cursor } from '../../outbox/statements';

/**
 * One session's conversation, over all processes that carry it: the one adapter in front of everything the agent says,
 * and what must be remembered of it.
 *
 * Ordering: events leave in the order in which the agent gave them.
 * Failure: after a kill `closePast` says how what was open ended, before anything new is said.
 */
export class Conversation {
  readonly #context: SourceContext;
  readonly #adapter: ClaudeAdapter;
  readonly #now: () => number;
  readonly #marks: ReplyAnnotator;
  #memory: ClaudeSession;
  #inHand: readonly InFlightMessage[];

  constructor(context: SourceContext, memory: ClaudeSession, inHand: readonly InFlightMessage[], now: () => number) {
    this.#context = context;
    this.#memory = memory;
    this.#inHand = inHand;
    this.#now = now;
    this.#marks = new ReplyAnnotator(memory.sessionId, () => context.owed());
    this.#adapter = new ClaudeAdapter({ sessionId: memory.sessionId, newRunId: randomUUID });
  }

  get memory(): ClaudeSession {
    return this.#memory;
  }

  get open(): OpenWork {
    return this.#context.openWork(this.#memory.sessionId);
  }

  /** Messages in the agent's hands that no turn has answered, oldest first. */
  get inHand(): readonly InFlightMessage[] {
    return this.#inHand;
  }

  /** An earlier runner was killed: says how ended what it left open. */
  closePast(): void {
    this.#memory = { ...this.#memory, pid: null };
    void this.#emit(endsOf(this.open, this.#memory.sessionId, this.#now()), sessionCursor(this.#memory));
  }

  /** Finds what an earlier runner had on its disk. */
  async findFiles(): Promise<void> {
    this.#inHand = await withLocalFiles(this.#context, this.#memory.sessionId, this.#inHand);
  }

  /** One message of the SDK's stream. */
  heard(message: unknown): void {
    const events = this.#adapter.read(message, this.#now());
    this.#say(events);
    const answered = answeredMessageIds(events);
    this.#marks.answered(answered);
    if (answered.length > 0) this.letGo(answered);
  }

  /** A message is about to enter the agent's input. It stands in the log already. */
  handed(messageId: string): void {
    this.#adapter.delivered(messageId);
  }

  asked(request: object): void {
    this.#say(this.#adapter.permissionAsked(request, this.#now()));
  }

  answered(requestId: string, answer: object): void {
    this.#say(this.#adapter.permissionAnswered(requestId, answer, this.#now()));
  }

  processEnded(exit: ProcessExit): void {
    this.#memory = { ...this.#memory, pid: null };
    this.#say(this.#adapter.ended(this.#now(), exit));
  }

  notice(text: string, tone: 'info' | 'warning' | 'error' = 'info'): void {
    this.#say([noticeEvent(text, tone, this.#now())]);
  }

  remember(change: Partial<Pick<ClaudeSession, 'conversationId' | 'pid' | 'running'>>): void {
    this.#memory = { ...this.#memory, ...change };
    void this.#emit([], sessionCursor(this.#memory));
  }

  /** Resolves once it is stored: from then on the message is not forgotten with this process. */
  async take(message: InFlightMessage): Promise<void> {
    this.#inHand = [...this.#inHand, message];
    this.#context.changed();
    await this.#emit([], this.#inHandCursor());
  }

  letGo(messageIds: readonly string[]): void {
    const kept = this.#inHand.filter(({ messageId }) => !messageIds.includes(messageId));
    if (kept.length === this.#inHand.length) return;
    this.#inHand = kept;
    void this.#emit([], this.#inHandCursor());
    this.#context.changed();
  }

  #inHandCursor() {
    return inFlightCursor(this.#memory.sessionId, this.#inHand);
  }

  #say(events: readonly TimedEvent[]): void {
    if (events.length > 0) void this.#emit(this.#marks.mark(events, this.open));
  }

  #emit(events: readonly TimedEvent[], ...cursors: Cursor[]): Promise<void> {
    return this.#context.emit(this.#memory.sessionId, events, cursors);
  }
}

/**
 * What a runner must know of a session that an earlier one ran, in the outbox's file: which conversation of Claude Code
 * it is, and which messages were in the CLI's hands.
 */
export interface ClaudeSession {
  sessionId: string;
  /** Claude Code's own name for the session. */
  conversationId: string;
  cwd: string;
  /** The CLI, while it runs. */
  pid: number | null;
  /** The runner is at it. Still set at a start: the one before was killed. */
  running: boolean;
}

const SESSION = 'claude-session:';
const IN_HAND = IN_FLIGHT_CURSORS[1];

function sessionCursor(memory: ClaudeSession): Cursor {
  return { name: `${SESSION}${memory.sessionId}`, value: JSON.stringify(memory) };
}

function inFlightCursor(sessionId: string, messages: readonly InFlightMessage[]): Cursor {
  return { name: `${IN_HAND}${sessionId}`, value: messages.length === 0 ? null : JSON.stringify(messages) };
}

/** All sessions this outbox has carried. */
export async function readSessions(outbox: Outbox): Promise<ClaudeSession[]> {
  return [...(await outbox.cursors(SESSION)).values()].map((value) => JSON.parse(value) as ClaudeSession);
}

export async function readInFlight(outbox: Outbox, sessionId: string): Promise<InFlightMessage[]> {
  return JSON.parse((await outbox.cursor(`${IN_HAND}${sessionId}`)) ?? '[]') as InFlightMessage[];
}

/** The session that a name means: the dashboard's, or Claude Code's own. */
export function findSession(memories: readonly ClaudeSession[], name: string): ClaudeSession | undefined {
  return (
    memories.find(({ sessionId }) => sessionId === name) ??
    memories.find(({ conversationId }) => conversationId === name)
  );
}

/**
 * Claude Code's own record of a conversation: JSON Lines under `<config>/projects/<folder>/<session>.jsonl`. It is what
 * a resumed process knows, so it answers whether a message has reached the agent.
 *
 * @see Claude Code 2.1.329; user entries carry the uuid we sent, those taken up in mid-turn stand in attachments
 */
export async function findConversation(
  env: Record<string, string | undefined>,
  conversationId: string,
): Promise<string | null> {
  const projects = join(env.CLAUDE_CONFIG_DIR || join(env.HOME || homedir(), '.claude'), 'projects');
  const folders = await readdir(projects).catch(() => []);
  for (const folder of folders) {
    const file = join(projects, folder, `${conversationId}.jsonl`);
    const isThere = await access(file).then(
      () => true,
      () => false,
    );
    if (isThere) return file;
  }
  return null;
}

interface ConversationContent {
  /** Somebody has said something: there is something to resume. */
  begun: boolean;
  /** Which of the ids asked for the agent has taken up. */
  taken: Set<string>;
}

export async function readConversation(file: string, ids: readonly string[]): Promise<ConversationContent> {
  const content: ConversationContent = { begun: false, taken: new Set() };
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) {
    const entry = parseJson(line) as { type?: unknown } | null;
    // The last line of a process that was killed may be cut short. What was only put into the queue of a process died with it.
    if (entry === null || entry.type === 'queue-operation') continue;
    if (entry.type === 'user' || entry.type === 'assistant') content.begun = true;
    for (const id of ids) if (line.includes(id)) content.taken.add(id);
  }
  return content;
}

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
import { IN_FLIGHT_CURSORS, type InFlightMessage, InFlightMessages } from '../../host/message-delivery';
import { answeredMessageIds, ReplyAnnotator } from '../../host/obligations';
import type { SourceContext } from '../../host/source';
import { noticeEvent } from '../../host/source-commands';
import type { Outbox } from '../../outbox/outbox';
import type { Cursor } from '../../outbox/statements';

/**
 * One session across all processes that run it: the adapter for its output, and the stored state.
 *
 * Ordering: events leave in the order in which the agent produced them.
 * Failure: after a kill, `closePast` closes open work before anything new is emitted.
 */
export class Conversation {
  readonly #context: SourceContext;
  readonly #adapter: ClaudeAdapter;
  readonly #now: () => number;
  readonly #annotator: ReplyAnnotator;
  readonly inFlight: InFlightMessages;
  #memory: ClaudeSession;

  constructor(context: SourceContext, memory: ClaudeSession, inFlight: readonly InFlightMessage[], now: () => number) {
    this.#context = context;
    this.#memory = memory;
    this.inFlight = new InFlightMessages(context, memory.sessionId, inFlight, IN_FLIGHT);
    this.#now = now;
    this.#annotator = new ReplyAnnotator(memory.sessionId, () => context.obligations());
    this.#adapter = new ClaudeAdapter({ sessionId: memory.sessionId, newRunId: randomUUID });
  }

  get memory(): ClaudeSession {
    return this.#memory;
  }

  get open(): OpenWork {
    return this.#context.openWork(this.#memory.sessionId);
  }

  /** Closes what a killed runner left open. */
  closePast(): void {
    this.#memory = { ...this.#memory, pid: null };
    void this.#emit(endsOf(this.open, this.#memory.sessionId, this.#now()), sessionCursor(this.#memory));
  }

  /** Handles a message of the SDK. */
  received(message: unknown): void {
    const events = this.#adapter.read(message, this.#now());
    this.#emitAnnotated(events);
    const messageIds = answeredMessageIds(events);
    this.#annotator.answered(messageIds);
    this.inFlight.remove(messageIds);
  }

  /** Notes a message, already in the log, that is about to enter the input of the agent. */
  delivering(messageId: string): void {
    this.#adapter.delivered(messageId);
  }

  requestOpened(request: object): void {
    this.#emitAnnotated(this.#adapter.requestOpened(request, this.#now()));
  }

  answered(requestId: string, answer: object): void {
    this.#emitAnnotated(this.#adapter.requestAnswered(requestId, answer, this.#now()));
  }

  processEnded(exit: ProcessExit): void {
    this.#memory = { ...this.#memory, pid: null };
    this.#emitAnnotated(this.#adapter.ended(this.#now(), exit));
  }

  notice(text: string, tone: 'info' | 'warning' | 'error' = 'info'): void {
    this.#emitAnnotated([noticeEvent(text, tone, this.#now())]);
  }

  remember(change: Partial<Pick<ClaudeSession, 'conversationId' | 'pid' | 'running'>>): void {
    this.#memory = { ...this.#memory, ...change };
    void this.#emit([], sessionCursor(this.#memory));
  }

  #emitAnnotated(events: readonly TimedEvent[]): void {
    if (events.length > 0) void this.#emit(this.#annotator.mark(events, this.open));
  }

  #emit(events: readonly TimedEvent[], ...cursors: Cursor[]): Promise<void> {
    return this.#context.emit(this.#memory.sessionId, events, cursors);
  }
}

/** Stored state of a session, for the next runner. */
export interface ClaudeSession {
  sessionId: string;
  /** Session id of Claude Code. */
  conversationId: string;
  cwd: string;
  /** PID of the running CLI. */
  pid: number | null;
  /** True while the runner runs. Still true at startup after a kill. */
  running: boolean;
}

const SESSION = 'claude-session:';
const IN_FLIGHT = IN_FLIGHT_CURSORS[1];

function sessionCursor(memory: ClaudeSession): Cursor {
  return { name: `${SESSION}${memory.sessionId}`, value: JSON.stringify(memory) };
}

/** Reads all sessions of this outbox. */
export async function readSessions(outbox: Outbox): Promise<ClaudeSession[]> {
  return [...(await outbox.cursors(SESSION)).values()].map((value) => JSON.parse(value) as ClaudeSession);
}

export async function readInFlight(outbox: Outbox, sessionId: string): Promise<InFlightMessage[]> {
  return JSON.parse((await outbox.cursor(`${IN_FLIGHT}${sessionId}`)) ?? '[]') as InFlightMessage[];
}

/**
 * Claude Code's own record of a conversation: JSON Lines in `<config>/projects/<folder>/<session>.jsonl`. A resumed
 * process knows exactly this record, so the record shows whether a message reached the agent.
 * @see Claude Code 2.1.329; user entries have the uuid we sent, messages read during a turn are attachments
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
  /** True if the conversation has a message, so that it can be resumed. */
  hasMessages: boolean;
  /** Those of the requested ids that the agent received. */
  received: Set<string>;
}

export async function readConversation(file: string, ids: readonly string[]): Promise<ConversationContent> {
  const content: ConversationContent = { hasMessages: false, received: new Set() };
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) {
    const entry = parseJson(line) as { type?: unknown } | null;
    // The last line of a killed process may be truncated. Queued operations died with their process.
    if (entry === null || entry.type === 'queue-operation') continue;
    if (entry.type === 'user' || entry.type === 'assistant') content.hasMessages = true;
    for (const id of ids) if (line.includes(id)) content.received.add(id);
  }
  return content;
}

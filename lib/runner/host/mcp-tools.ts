import { randomUUID } from 'node:crypto';
import type { TimedEvent } from '@interlude/protocol/ag-ui';
import type { AgentStatus, SelfReport } from '@interlude/protocol/agent-status';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf, parseJson } from '@interlude/protocol/fields';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import type { SessionTools } from '../mcp/agent-tools';
import type { Cursor } from '../outbox/statements';
import type { OpenObligation } from './obligations';

export interface McpToolsOptions {
  emit: (sessionId: string, events: TimedEvent[]) => void;
  store: (cursors: Cursor[]) => void;
  openWork: (sessionId: string) => OpenWork;
  obligations: () => readonly OpenObligation[];
  caughtUp: (sessionId: string) => Promise<void>;
  /** Called when the agent has replied to this message, and so has received it. */
  replied: (sessionId: string, messageId: string) => void;
  /** Sends a new report immediately. */
  reported: () => void;
  now?: () => number;
}

type StoredReport = NonNullable<AgentStatus['report']>;

const CURSOR = 'report:';
/** Maximum number of replies remembered per session. */
const MOST_REPLIES = 256;

/**
 * Handles reports and replies that agents make with Interlude's tools.
 *
 * Ordering: earlier output of the agent is emitted first (`caughtUp`), so that a reply lands in the right turn.
 * Failure: reports are stored and survive a restart. Replies are remembered only in memory: at worst the agent is
 * reminded once more.
 */
export class McpTools {
  readonly #options: McpToolsOptions;
  readonly #reports = new Map<string, StoredReport>();
  /** By session and message: the turn of the reply; null outside a turn. */
  readonly #replies = new Map<string, Map<string, string | null>>();

  constructor(options: McpToolsOptions) {
    this.#options = options;
  }

  async restore(outbox: { cursors: (prefix: string) => Promise<Map<string, string>> }): Promise<void> {
    for (const [name, value] of await outbox.cursors(CURSOR)) {
      this.#reports.set(name.slice(CURSOR.length), fieldsOf(parseJson(value)) as StoredReport);
    }
  }

  reportOf(sessionId: string): StoredReport | undefined {
    return this.#reports.get(sessionId);
  }

  /** Pending replies, without those already answered here. */
  obligations(): OpenObligation[] {
    return this.#options
      .obligations()
      .filter(({ sessionId, messageId }) => this.#replies.get(sessionId)?.has(messageId) !== true);
  }

  toolsFor(sessionId: string): SessionTools {
    return {
      report: (report) => this.#report(sessionId, report),
      obligations: () => this.#obligationsIn(sessionId),
      reply: (messageId, text) => this.#reply(sessionId, messageId, text),
    };
  }

  /**
   * Adds replied messages to the ends of turns: the server could not know from the reply alone that the agent had a
   * message that arrived during the turn.
   * @param open open work before the events
   */
  annotate(
    sessionId: string,
    events: readonly TimedEvent[],
    open: OpenWork,
  ): { events: TimedEvent[]; cursors: Cursor[] } {
    let { turn } = open;
    const out = events.map((one) => {
      const { event } = one;
      const named = event.metadata?.interlude?.userMessageIds;
      if (event.type === 'RUN_STARTED') turn = { runId: String(event.runId), userMessageIds: named ?? [] };
      if (event.type !== 'RUN_FINISHED' && event.type !== 'RUN_ERROR') return one;
      const ended = turn;
      turn = null;
      const replied = this.#repliesIn(sessionId, ended?.runId);
      if (replied.length === 0) return one;
      if (event.type === 'RUN_ERROR' || fieldsOf(event.outcome).type === 'interrupt') {
        // A failed turn answers nothing, so the replies stay pending.
        for (const messageId of replied) this.#replies.get(sessionId)?.delete(messageId);
        return one;
      }
      const userMessageIds = [...new Set([...(named ?? ended?.userMessageIds ?? []), ...replied])];
      const interlude = { ...event.metadata?.interlude, userMessageIds };
      return { ...one, event: { ...event, metadata: { ...event.metadata, interlude } } };
    });
    const isOver = events.some(({ event }) => event.type === 'CUSTOM' && event.name === CUSTOM.sessionEnded);
    if (isOver) this.#replies.delete(sessionId);
    const wasReported = isOver && this.#reports.delete(sessionId);
    return { events: out, cursors: wasReported ? [{ name: CURSOR + sessionId, value: null }] : [] };
  }

  async #report(sessionId: string, { state, summary, link }: SelfReport): Promise<void> {
    await this.#options.caughtUp(sessionId);
    const turnId = this.#options.openWork(sessionId).turn?.runId ?? null;
    const optional = { state, ...(summary === null ? {} : { summary }), ...(link === null ? {} : { link }) };
    const report: StoredReport = { ...optional, turnId, at: this.#now() };
    this.#reports.set(sessionId, report);
    this.#options.store([{ name: CURSOR + sessionId, value: JSON.stringify(report) }]);
    this.#options.reported();
  }

  async #reply(sessionId: string, messageId: string, text: string): Promise<string | null> {
    await this.#options.caughtUp(sessionId);
    const replies = this.#replies.get(sessionId) ?? new Map<string, string | null>();
    if (replies.has(messageId)) return 'You have replied to this message already.';
    if (!this.#obligationsIn(sessionId).some((obligation) => obligation.messageId === messageId)) {
      return `No message ${JSON.stringify(messageId)} waits for a reply from you in this session.`;
    }
    const turnId = this.#options.openWork(sessionId).turn?.runId ?? null;
    const [oldest] = replies.keys();
    if (replies.size >= MOST_REPLIES && oldest !== undefined) replies.delete(oldest);
    this.#replies.set(sessionId, replies.set(messageId, turnId));
    const id = `reply-${randomUUID()}`;
    const occurredAt = this.#now();
    const metadata = { interlude: { replyTo: [messageId] } };
    this.#options.emit(sessionId, [
      { occurredAt, event: { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant', metadata } },
      { occurredAt, event: { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: text } },
      { occurredAt, event: { type: 'TEXT_MESSAGE_END', messageId: id } },
    ]);
    this.#options.replied(sessionId, messageId);
    return null;
  }

  #obligationsIn(sessionId: string): OpenObligation[] {
    return this.obligations()
      .filter((one) => one.sessionId === sessionId)
      .sort((a, b) => a.sentAt - b.sentAt);
  }

  #repliesIn(sessionId: string, turnId: string | undefined): string[] {
    if (turnId === undefined) return [];
    return [...(this.#replies.get(sessionId) ?? [])].flatMap(([messageId, inTurn]) =>
      inTurn === turnId ? [messageId] : [],
    );
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

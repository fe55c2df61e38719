import type { InboxMarks } from '@interlude/protocol/inbox';
import type { Attention } from '@interlude/protocol/inbox-rules';
import type { ObligationChange } from '@interlude/protocol/projections/obligations';
import {
  attentionOfAgent,
  attentionOfReply,
  attentionOfSession,
  attentionOfTask,
} from '@interlude/protocol/projections/open-requests';
import type { SessionFold } from '@interlude/protocol/projections/session-summary';
import type { AgentSummary } from '@interlude/protocol/read-models';
import type { InboxChange, InsightRow } from '@/lib/server/event-log/batch-rows';
import type { TaskChange } from './project-session';

/**
 * Collects the inbox changes of a batch. Items derive from the rows they are about, so comparing each row before and
 * after shows which items to open and close, without reading any item.
 *
 * Ordering: an item takes its position after the row it derives from.
 */
export class InboxLedger {
  readonly #changes: InboxChange[] = [];
  readonly #now: number;
  readonly #nextPosition: () => number;

  constructor(now: number, nextPosition: () => number) {
    this.#now = now;
    this.#nextPosition = nextPosition;
  }

  get changes(): readonly InboxChange[] {
    return this.#changes;
  }

  /** @param before null if the session had no derived inbox items */
  session(before: SessionFold | null, { summary, pendingRequests }: SessionFold): void {
    const { id: sessionId, agentId } = summary;
    const earlier = before === null ? [] : attentionOfSession(before.summary, before.pendingRequests);
    const isHidden = summary.arrangement.archivedAt !== null;
    this.#compare({ agentId, sessionId }, earlier, attentionOfSession(summary, pendingRequests), isHidden);
  }

  replies(changes: readonly ObligationChange[]): void {
    for (const { before, after } of changes) {
      const { agentId, sessionId } = after;
      this.#compare({ agentId, sessionId }, before === null ? [] : attentionOfReply(before), attentionOfReply(after));
    }
  }

  tasks(changes: readonly TaskChange[]): void {
    for (const { before, after } of changes) {
      const { agentId, sessionId } = after;
      this.#compare({ agentId, sessionId }, before === null ? [] : attentionOfTask(before), attentionOfTask(after));
    }
  }

  /** @param failure the agent's newest failure in the batch */
  agent(before: AgentSummary | undefined, after: AgentSummary, failure: InsightRow | undefined): void {
    const { id: agentId } = after;
    const title = failure === undefined ? null : [failure.source, failure.detail].filter(Boolean).join(': ');
    const now = attentionOfAgent(after).map((one) => (one.kind === 'hook-failure' ? { ...one, title } : one));
    this.#compare({ agentId, sessionId: null }, before === undefined ? [] : attentionOfAgent(before), now);
  }

  mark(marks: ReadonlyMap<string, InboxMarks>): void {
    for (const [id, made] of marks)
      this.#changes.push({ kind: 'marked', id, marks: made, position: this.#nextPosition() });
  }

  #compare(
    of: { agentId: string; sessionId: string | null },
    before: readonly Attention[],
    after: readonly Attention[],
    isHidden = false,
  ) {
    const known = new Map(before.map((one) => [one.id, one]));
    for (const attention of after) {
      const earlier = known.get(attention.id);
      known.delete(attention.id);
      if (earlier !== undefined && JSON.stringify(earlier) === JSON.stringify(attention)) continue;
      this.#changes.push({ kind: 'open', ...of, attention, at: this.#now, position: this.#nextPosition() });
    }
    for (const id of known.keys()) {
      this.#changes.push({ kind: 'done', id, at: this.#now, position: this.#nextPosition(), isHidden });
    }
  }
}

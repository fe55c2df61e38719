import type { AgUiEvent } from './ag-ui';
import type { InboxItem } from './inbox';
import { MAX_ID_LENGTH } from './limits';
import type { Position } from './position';
import type { AgentSummary, LogLine, Obligation, SessionSummary, Task } from './read-models';

/** What `GET /stream` sends. @see PROTOCOL.md, Live */

export interface SessionEventData {
  sessionId: string;
  agentId: string;
  seq: number;
  occurredAt: number;
  receivedAt: number;
  event: AgUiEvent;
}

/** The line's position is the frame's id. */
export interface LogData extends Omit<LogLine, 'position'> {
  agentId: string;
}

export interface FrameData {
  hello: { resume: 'ok' | 'gap'; position: Position };
  'session-event': SessionEventData;
  log: LogData;
  session: SessionSummary;
  agent: AgentSummary;
  task: Task;
  obligation: Obligation;
  inbox: InboxItem;
  'up-to-date': { position: Position };
  /** `unauthorized`: who listens may not any more; the next request says why. */
  bye: { reason: 'planned' | 'slow' | 'shutdown' | 'unauthorized' };
}

export type FrameName = keyof FrameData;

/** A frame. Only frames that stand for a row carry an `id`: the position after which to resume. */
export type Frame = { [Name in FrameName]: { event: Name; id?: Position; data: FrameData[Name] } }[FrameName];

export type Topic = { kind: 'fleet' } | { kind: 'session'; sessionId: string } | { kind: 'logs'; agentId: string };

/** @returns null when `text` names no topic */
export function parseTopic(text: string): Topic | null {
  if (text === 'fleet') return { kind: 'fleet' };
  const [, prefix, id] = /^(session|logs):(.+)$/s.exec(text) ?? [];
  if (id === undefined || id.length > MAX_ID_LENGTH) return null;
  return prefix === 'session' ? { kind: 'session', sessionId: id } : { kind: 'logs', agentId: id };
}

export function formatTopic(topic: Topic): string {
  switch (topic.kind) {
    case 'fleet':
      return 'fleet';
    case 'session':
      return `session:${topic.sessionId}`;
    case 'logs':
      return `logs:${topic.agentId}`;
  }
}

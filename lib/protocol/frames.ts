import * as z from 'zod';
import { AgUiEvent } from './ag-ui';
import { Position } from './field-schemas';
import { InboxItem } from './inbox';
import { AgentSummary, LogLine, Obligation, SessionSummary, Task } from './read-models';

/** Frames of `GET /stream`. @see PROTOCOL.md, Live */

export const SessionEventData = z.object({
  sessionId: z.string(),
  agentId: z.string(),
  seq: z.number(),
  occurredAt: z.number(),
  receivedAt: z.number(),
  event: AgUiEvent,
});
export type SessionEventData = z.infer<typeof SessionEventData>;

const LogData = LogLine.omit({ position: true })
  .extend({ agentId: z.string() })
  .describe('A log line. Its position is the frame’s id.');

export const FrameData = z.object({
  hello: z.object({ resume: z.enum(['ok', 'gap']), position: Position }),
  'session-event': SessionEventData,
  log: LogData,
  session: SessionSummary,
  agent: AgentSummary,
  task: Task,
  obligation: Obligation,
  inbox: InboxItem,
  'up-to-date': z.object({ position: Position }),
  bye: z
    .object({ reason: z.enum(['planned', 'slow', 'shutdown', 'unauthorized']) })
    .describe('`unauthorized`: the credential no longer permits the stream; the next request says why.'),
});
export type FrameData = z.infer<typeof FrameData>;
export type FrameName = keyof FrameData;

/** A frame. Only row frames carry an `id`: the position to resume after. */
export type Frame = { [Name in FrameName]: { event: Name; id?: string; data: FrameData[Name] } }[FrameName];

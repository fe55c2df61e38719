import type { AgentStatus } from '@interlude/protocol/agent-status';
import { COMMAND_TYPES } from '@interlude/protocol/commands';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { PROTOCOL_VERSION } from '@interlude/protocol/version';
import type { OutgoingRecord } from '../outbox/outbox';
import { RUNNER_VERSION } from './own-program.mjs';
import { type SessionFacts, type Source, VERBS, type Verbs } from './source';

export type StatusRecord = Extract<OutgoingRecord, { kind: 'status' }>;

/** A session as described by a status record. */
export interface SessionNow {
  facts: SessionFacts;
  open: OpenWork;
  /** What its agent last reported. */
  report?: AgentStatus['report'];
  /** What it was in the middle of when its agent was lost. */
  last?: AtWork | undefined;
  /** Processor seconds of its processes; null while they are not sampled. */
  cpuSeconds?: number | null;
}

export type AtWork = NonNullable<NonNullable<AgentStatus['unreachable']>['last']>;

/** What a session with this open is in the middle of. */
export function atWork({ turn, tasks, requests }: OpenWork): AtWork | undefined {
  if (requests.length > 0) return 'needs-input';
  if (turn !== null) return 'working';
  return tasks.length > 0 ? 'waiting-on-background' : undefined;
}

/** @param session missing if the record is about the agent alone */
export function statusRecord(
  agentId: string,
  about: AgentStatus,
  occurredAt: number,
  session?: SessionNow,
): StatusRecord {
  if (session === undefined) return { kind: 'status', agentId, occurredAt, status: { ...about, versions: versions() } };
  const { sessionId, provider, attachments, ...facts } = session.facts;
  const { turn, tasks, requests } = session.open;
  const { unreachable } = about;
  const open = {
    openTurnId: turn?.runId ?? null,
    // An agent that can't be reached runs nothing that anybody could vouch for.
    tasks: unreachable === undefined ? tasks.map(({ id, description }) => ({ id, description })) : [],
    requests: [...requests],
  };
  const { report, last, cpuSeconds = null } = session;
  const reported = {
    ...(report === undefined ? {} : { report }),
    ...(unreachable && last !== undefined ? { unreachable: { ...unreachable, last } } : {}),
    ...(cpuSeconds === null ? {} : { cpuSeconds }),
  };
  const taken = attachments === null ? {} : { attachments: [...attachments] };
  const status: AgentStatus = { ...about, versions: versions(provider), ...facts, ...taken, ...open, ...reported };
  return { kind: 'status', agentId, sessionId, occurredAt, status };
}

/** Which commands a source acts on, as its runner reports it: all of them by name, since older runners name none. */
export function takenBy(source: Pick<Source, keyof Verbs | 'refusals'>): AgentStatus {
  const takes = COMMAND_TYPES.filter((type) => type === 'log-level.set' || source[VERBS[type]] !== undefined);
  return { takes, ...(source.refusals === undefined ? {} : { takesNot: source.refusals }) };
}

/** Who speaks, what, and for whom. */
export function versions(provider: string | null = null) {
  return { runner: RUNNER_VERSION, protocol: PROTOCOL_VERSION, ...(provider === null ? {} : { provider }) };
}

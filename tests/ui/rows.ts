import type { FleetCounts, InboxItem } from '@interlude/protocol/inbox';
import type {
  AgentSummary,
  Insight,
  MessageItem,
  RequestItem,
  SessionSummary,
  Task,
  TaskItem,
  ToolCallItem,
  Turn,
} from '@interlude/protocol/read-models';
import { groupOf, listedStateOf } from '@interlude/protocol/session-predicates';
import { agentStateOf, noListed, noSessions } from '@interlude/protocol/session-states';
import { noItems } from '@interlude/protocol/vocabulary';

/** Complete rows of the read models. A test passes only the fields it is about. */

export function anInsight(fields: Partial<Insight> = {}): Insight {
  return {
    position: '1',
    agentId: 'agent-1',
    sessionId: null,
    signal: 'hook_fatal',
    value: null,
    outcome: null,
    source: 'Stop',
    detail: 'exit 3: read the input',
    isFailure: true,
    occurredAt: 1_000,
    seenAt: null,
    ...fields,
  };
}

/** An inbox item, unchanged since it was opened unless `fields` has an `openedPosition`. */
export function anInboxItem(fields: Partial<InboxItem> = {}): InboxItem {
  return {
    id: 'i',
    kind: 'permission',
    agentId: 'builder',
    sessionId: 's',
    session: null,
    title: 'Run **make**?',
    count: 1,
    request: null,
    messageId: null,
    from: null,
    since: 1_000,
    openedPosition: fields.updatedPosition ?? '1',
    updatedPosition: '1',
    seenAt: null,
    snoozedUntil: null,
    claim: null,
    doneAt: null,
    ...fields,
  };
}

/** An agent whose sessions are listed in their own states, unless `fields` has `listedStates`. */
export function anAgent(fields: Partial<AgentSummary> = {}): AgentSummary {
  const listedStates = { ...noListed(), ...(fields.listedStates ?? fields.sessionStates) };
  return {
    id: 'agent-1',
    kind: null,
    status: null,
    statusAt: null,
    sessionCount: Object.values(fields.sessionStates ?? {}).reduce((sum, count) => sum + count, 0),
    sessionStates: noSessions(),
    brokenOffCount: 0,
    state: agentStateOf(listedStates),
    stateSince: 1_000,
    runningTaskCount: 0,
    lostCount: 0,
    quarantinedCount: 0,
    parkedCount: 0,
    owedCount: 0,
    overdueCount: 0,
    insightCount: 0,
    otherFailureCount: 0,
    logLevel: { level: null, since: null, by: null, until: null, base: null, desired: null },
    connection: 'away',
    connectedSince: null,
    runnerId: null,
    retiredAt: null,
    firstSeenAt: 1_000,
    lastSeenAt: 1_000,
    updatedPosition: '1',
    ...fields,
    listedStates,
  };
}

export function aSession(fields: Partial<SessionSummary> = {}): SessionSummary {
  return {
    id: 's',
    agentId: 'agent-1',
    title: 'Do it',
    state: 'idle',
    stateReason: null,
    stateSince: 1_000,
    evidence: { rule: 14, source: 'turn', observedAt: 1_000 },
    observations: { session: { observedAt: 1_000, turnId: null, value: null } },
    stateDueAt: null,
    openTurnId: null,
    lastTurnKind: 'user',
    turnCount: 1,
    runningTaskCount: 0,
    pendingRequestCount: 0,
    lostCount: 0,
    quarantinedCount: 0,
    owedCount: 0,
    overdueCount: 0,
    insightCount: 0,
    otherFailureCount: 0,
    lastText: null,
    away: null,
    wakeRule: null,
    arrangement: { name: null, pinnedAt: null, archivedAt: null, seenState: null },
    startedAt: 1_000,
    lastEventAt: 1_000,
    lastHeardAt: 1_000,
    updatedPosition: '1',
    ...fields,
  };
}

export function aTask(fields: Partial<Task> = {}): Task {
  return {
    id: 't1',
    runId: null,
    sessionId: 's',
    agentId: 'agent-1',
    kind: 'shell',
    description: 'Poll',
    status: 'running',
    summary: null,
    exitCode: null,
    error: null,
    outputFile: null,
    hasOutput: false,
    usage: null,
    lastToolName: null,
    toolCallId: null,
    parentTaskId: null,
    startedAt: 1_000,
    endedAt: null,
    startedInTurnId: 'r1',
    answeredInTurnId: null,
    reportedBy: null,
    assignedBy: null,
    toldElsewhere: null,
    position: '10',
    ...fields,
  };
}

export function aTurn(fields: Partial<Turn> = {}): Turn {
  return {
    id: 'r1',
    kind: 'user',
    state: 'finished',
    position: '1',
    trigger: null,
    userMessageIds: [],
    parentTurnId: null,
    startedAt: 1_000,
    endedAt: 3_000,
    error: null,
    items: [],
    ...fields,
  };
}

export function aMessage(fields: Partial<MessageItem> = {}): MessageItem {
  return {
    kind: 'message',
    id: 'm1',
    position: '2',
    at: 1_000,
    role: 'assistant',
    name: null,
    text: 'Hello',
    streaming: false,
    delivery: null,
    deliveryReason: null,
    replyTo: [],
    clientId: null,
    ...fields,
  };
}

export function aCall(fields: Partial<ToolCallItem> = {}): ToolCallItem {
  return {
    kind: 'tool-call',
    id: 'c1',
    position: '3',
    at: 1_000,
    name: 'Bash',
    args: { command: 'npm test' },
    argsText: '{"command":"npm test"}',
    result: 'ok',
    status: 'completed',
    endedAt: 2_000,
    ...fields,
  };
}

export function aTaskMoment(fields: Partial<TaskItem> = {}): TaskItem {
  return { kind: 'task', id: 't1', position: '10', at: 1_000, runId: null, phase: 'started', ...fields };
}

export function aRequest(fields: Partial<RequestItem> = {}): RequestItem {
  return {
    kind: 'request',
    id: 'a',
    position: '1',
    at: 1,
    receivedAt: 1,
    requestKind: 'permission',
    toolCallId: null,
    toolName: 'Bash',
    title: 'Use Bash',
    input: { command: 'ls' },
    outcome: null,
    message: null,
    resolvedAt: null,
    expiresAt: null,
    digest: 'd1',
    openedPosition: '1',
    answer: null,
    ...fields,
  };
}

export function someCounts(fields: Partial<FleetCounts> = {}): FleetCounts {
  return {
    position: '1',
    needsYou: 0,
    inbox: { all: 0, kinds: noItems(), requests: 0 },
    sessions: { ...noSessions(), lost: 0 },
    groups: { ...noListed(), pinned: 0, archived: 0 },
    agents: 0,
    agentStates: { ...noListed(), none: 0 },
    retiredStates: { ...noListed(), none: 0 },
    alsoFailed: { active: 0, retired: 0 },
    changesAt: null,
    ...fields,
  };
}

/** The server's counts of these rows. */
export function countsOf(rows: {
  sessions?: readonly SessionSummary[];
  agents?: readonly AgentSummary[];
}): FleetCounts {
  const { sessions = [], agents = [] } = rows;
  const counts = someCounts({ agents: agents.length });
  for (const session of sessions) {
    counts.sessions[listedStateOf(session)] += 1;
    counts.groups[groupOf(session)] += 1;
  }
  for (const { state, listedStates, retiredAt } of agents) {
    (retiredAt === null ? counts.agentStates : counts.retiredStates)[state ?? 'none'] += 1;
    if (state === 'needs-input' && listedStates.failed > 0)
      counts.alsoFailed[retiredAt === null ? 'active' : 'retired'] += 1;
  }
  return counts;
}

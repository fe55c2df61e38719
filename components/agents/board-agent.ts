import { fieldsOf, numberOf } from '@interlude/protocol/fields';
import type { AgentSummary, SessionSummary } from '@interlude/protocol/read-models';
import { countedStateOf, isStalled, needsAttention } from '@interlude/protocol/session-predicates';
import { AGENT_STATES, type AgentState } from '@interlude/protocol/session-states';
import { GROUP_WORD, sessionTitle } from '@/components/sessions/session-labels';
import { plural } from '@/components/ui/duration';

/** `8 sessions: 1 failed · 2 working · 5 idle`, the most urgent first. Empty for one session. */
export function sessionsInWords({ listedStates, sessionCount }: AgentSummary): string {
  if (sessionCount < 2) return '';
  const states = AGENT_STATES.filter((state) => listedStates[state] > 0);
  const named = states.map((state) => `${listedStates[state].toLocaleString('en')} ${GROUP_WORD[state].toLowerCase()}`);
  return `${plural(sessionCount, 'session')}: ${named.join(' · ')}`;
}

/** The loaded sessions of an agent in brief. */
export interface AgentWork {
  /** The most urgent one, and of several the one that makes no progress, else the last to enter its state. */
  lead: SessionSummary;
  openCount: number;
  endingCount: number;
}

export function workByAgent(sessions: readonly SessionSummary[]): Map<string, AgentWork> {
  const works = new Map<string, AgentWork>();
  for (const session of sessions) {
    const work = works.get(session.agentId);
    const openCount = (work?.openCount ?? 0) + (session.state === 'exited' ? 0 : 1);
    const endingCount = (work?.endingCount ?? 0) + (session.isEnding ? 1 : 0);
    const lead = work === undefined || isAhead(session, work.lead) ? session : work.lead;
    works.set(session.agentId, { lead, openCount, endingCount });
  }
  return works;
}

/** Ids of the agents with a loaded session that makes no progress, as JSON: equal until a row has to move. */
export function stalledAgents(sessions: readonly SessionSummary[] = []): string {
  return JSON.stringify([...new Set(sessions.filter(isStalled).map(({ agentId }) => agentId))].sort());
}

function isAhead(one: SessionSummary, other: SessionSummary): boolean {
  const by = factsOf(one).rank - factsOf(other).rank;
  return by < 0 || (by === 0 && one.stateSince > other.stateSince);
}

const facts = new WeakMap<SessionSummary, ReturnType<typeof readFacts>>();

function factsOf(session: SessionSummary) {
  // a changed row is a new object
  const known = facts.get(session) ?? readFacts(session);
  facts.set(session, known);
  return known;
}

/** A session's rank by urgency, and the text that its agent's row shows. */
function readFacts(session: SessionSummary) {
  const { stateReason, lastText, request, evidence, observations, stateOccurredAt } = session;
  const state = countedStateOf(session);
  const reason = needsAttention(session) ? [stateReason, lastText, observations.process] : [];
  return {
    state,
    rank: 2 * AGENT_STATES.indexOf(state) + (isStalled(session) ? 0 : 1),
    shown: JSON.stringify([state, sessionTitle(session), evidence.note, request, reason, stateOccurredAt]),
  };
}

function shownOf({ lead, openCount, endingCount }: AgentWork): string {
  return `${openCount} ${endingCount} ${factsOf(lead).shown}`;
}

/** `workByAgent` of the loaded sessions. The same objects until a row has to change: sessions change all the time. */
export class ShownWork {
  #sessions: readonly SessionSummary[] = [];
  #works: ReadonlyMap<string, AgentWork> = new Map();

  read(sessions: readonly SessionSummary[] = []): ReadonlyMap<string, AgentWork> {
    if (sessions === this.#sessions) return this.#works;
    this.#sessions = sessions;
    const works = workByAgent(sessions);
    let isSame = works.size === this.#works.size;
    for (const [id, work] of works) {
      const known = this.#works.get(id);
      if (known !== undefined && shownOf(known) === shownOf(work)) works.set(id, known);
      else isSame = false;
    }
    if (!isSame) this.#works = works;
    return this.#works;
  }
}

/** The session that gives the agent its state; undefined if it is not loaded. */
export function leadOf({ state }: AgentSummary, work: AgentWork | undefined): SessionSummary | undefined {
  return work !== undefined && factsOf(work.lead).state === state ? work.lead : undefined;
}

/** States whose duration matters. */
export const TIMED_STATES: ReadonlySet<AgentState | null> = new Set([
  'needs-input',
  'failed',
  'lost',
  'working',
  'waiting-on-background',
]);

/** True if people expect a connected runner and there is none. */
export function isDisconnected({ connection, connectedSince, retiredAt, state }: AgentSummary): boolean {
  const isOver = state === null || state === 'exited' || retiredAt !== null;
  return connection === 'away' && connectedSince !== null && !isOver;
}

/** `3 records lost · 1 rejected`; empty if nothing is missing. */
export function missingInWords({ lostCount, quarantinedCount, parkedCount }: AgentSummary): string {
  const rejected = quarantinedCount - parkedCount;
  const parts = [
    lostCount > 0 && `${plural(lostCount, 'record')} lost`,
    rejected > 0 && `${rejected.toLocaleString('en')} rejected`,
    parkedCount > 0 && `${parkedCount.toLocaleString('en')} unassigned`,
  ];
  return parts.filter(Boolean).join(' · ');
}

const providers = new WeakMap<AgentSummary, ReturnType<typeof readProvider>>();

/** Kinds of agents, shown until the provider reports its own name. */
const KIND_WORD: ReadonlyMap<string, string> = new Map([
  ['claude', 'Claude Code'],
  ['hooks', 'Claude Code'],
  ['codex', 'Codex'],
  ['opencode', 'OpenCode'],
  ['acp', 'ACP agent'],
  ['agentapi', 'AgentAPI'],
  ['agui', 'AG-UI server'],
]);

/** Splits `Claude Code 2.1.329` into name and version. */
export function providerOf(agent: AgentSummary): { name: string | null; version: string | null } {
  // a changed row is a new object
  const known = providers.get(agent) ?? readProvider(agent);
  providers.set(agent, known);
  return known;
}

function readProvider({ status, kind }: AgentSummary): { name: string | null; version: string | null } {
  const text =
    versionsOf(status)
      .find((version) => version.of === 'provider')
      ?.text.trim() ?? null;
  if (text === null) return { name: kind && (KIND_WORD.get(kind) ?? kind), version: null };
  const [, name, version] = /^(.+?) v?(\d[^ ]*)$/.exec(text) ?? [];
  return name === undefined ? { name: text, version: null } : { name, version: version ?? null };
}

export function hostOf({ status }: AgentSummary): string | null {
  const host = status?.host;
  return typeof host === 'string' && host.trim() !== '' ? host : null;
}

/** Lost and rejected records of an agent, including unassigned ones. */
export function missingOf({ lostCount, quarantinedCount }: AgentSummary): number {
  return lostCount + quarantinedCount;
}

interface OutboxFacts {
  /** Records not delivered yet. */
  depth: number;
  oldestAgeMs: number | null;
  /** Records that the server refused for good; the runner keeps them on disk. */
  poisoned: number;
  lost: number;
}

/** The outbox in a runner's status; null if the status has none. */
export function outboxFacts(status: Record<string, unknown> | null): OutboxFacts | null {
  const { depth, oldestAgeMs, poisoned, lost } = fieldsOf(status?.outbox);
  if (typeof depth !== 'number') return null;
  return { depth, oldestAgeMs: numberOf(oldestAgeMs), poisoned: numberOf(poisoned) ?? 0, lost: numberOf(lost) ?? 0 };
}

/**
 * The versions in an agent's status, in display order.
 */
export function versionsOf(status: Record<string, unknown> | null): { of: string; text: string }[] {
  const { runner, protocol, provider } = fieldsOf(status?.versions);
  return [
    { of: 'runner', text: isText(runner) ? `runner ${runner}` : '' },
    { of: 'protocol', text: isText(protocol) ? `protocol ${protocol}` : '' },
    { of: 'provider', text: isText(provider) ? provider : '' },
  ].filter(({ text }) => text !== '');
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}

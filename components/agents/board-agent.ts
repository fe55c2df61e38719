import { fieldsOf, numberOf } from '@interlude/protocol/fields';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { SESSION_STATES, type SessionState } from '@interlude/protocol/session-states';

/**
 * An agent's sessions by state. As in the list of sessions, crashed ones count as failed.
 */
export function stateCounts({ sessionStates, brokenOffCount }: AgentSummary): Record<SessionState, number> {
  if (brokenOffCount === 0) return sessionStates;
  const { failed, exited } = sessionStates;
  return { ...sessionStates, failed: failed + brokenOffCount, exited: exited - brokenOffCount };
}

/** The most urgent state; null if the agent has no sessions. */
export function urgentState(agent: AgentSummary): SessionState | null {
  const counts = stateCounts(agent);
  return SESSION_STATES.find((state) => counts[state] > 0) ?? null;
}

const providers = new WeakMap<AgentSummary, ReturnType<typeof readProvider>>();

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
  if (text === null) return { name: kind, version: null };
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

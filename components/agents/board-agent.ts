import type { AgentSummary } from '@interlude/protocol/read-models';
import { SESSION_STATES, type SessionState } from '@interlude/protocol/vocabulary';
import { versionsOf } from './status-facts';

/**
 * How an agent's sessions stand, as the list of sessions has it: one whose process has failed stands with what has failed.
 */
export function standingCounts({ sessionStates, brokenOffCount }: AgentSummary): Record<SessionState, number> {
  if (brokenOffCount === 0) return sessionStates;
  const { failed, exited } = sessionStates;
  return { ...sessionStates, failed: failed + brokenOffCount, exited: exited - brokenOffCount };
}

/** The most urgent of them; null if the agent has no session. */
export function urgentStanding(agent: AgentSummary): SessionState | null {
  const counts = standingCounts(agent);
  return SESSION_STATES.find((state) => counts[state] > 0) ?? null;
}

const providers = new WeakMap<AgentSummary, ReturnType<typeof readProvider>>();

/** `Claude Code 2.1.329` as the program and its version; without a number at its end it is all program. */
export function providerOf(agent: AgentSummary): { name: string | null; version: string | null } {
  // a row is another object once anything in it has changed
  const known = providers.get(agent) ?? readProvider(agent);
  providers.set(agent, known);
  return known;
}

function readProvider({ status, kind }: AgentSummary): { name: string | null; version: string | null } {
  const said =
    versionsOf(status)
      .find((version) => version.of === 'provider')
      ?.text.trim() ?? null;
  if (said === null) return { name: kind, version: null };
  const [, name, version] = /^(.+?) v?(\d[^ ]*)$/.exec(said) ?? [];
  return name === undefined ? { name: said, version: null } : { name, version: version ?? null };
}

export function hostOf({ status }: AgentSummary): string | null {
  const host = status?.host;
  return typeof host === 'string' && host.trim() !== '' ? host : null;
}

/** How many of an agent's records are lost or in quarantine, where those are that are parked. */
export function missingOf({ lostCount, quarantinedCount }: AgentSummary): number {
  return lostCount + quarantinedCount;
}

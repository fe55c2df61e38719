import { fieldsOf, numberOf } from '@interlude/protocol/fields';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { AGENT_STATES } from '@interlude/protocol/session-states';
import { GROUP_WORD } from '@/components/sessions/session-labels';
import { plural } from '@/components/ui/duration';

/** `1 of 8 sessions`, `2 working`, `5 idle`: the sessions in the agent's state, then the others. Empty for one session. */
export function sessionsInWords({ state, listedStates, sessionCount }: AgentSummary): string[] {
  if (state === null || sessionCount < 2) return [];
  const count = listedStates[state];
  const others = AGENT_STATES.filter((one) => one !== state && listedStates[one] > 0);
  const named = others.map((one) => `${listedStates[one].toLocaleString('en')} ${GROUP_WORD[one].toLowerCase()}`);
  const all = plural(sessionCount, 'session');
  return [count === sessionCount ? `all ${all}` : `${count.toLocaleString('en')} of ${all}`, ...named];
}

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

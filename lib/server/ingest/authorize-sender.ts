import type { ProducerRef } from '@interlude/protocol/envelope';
import { AppError } from '@interlude/protocol/errors';
import { CUSTOM, customName } from '@interlude/protocol/event-fields';
import { reachesAgent, type Scope } from '@interlude/protocol/scope';
import { columnText } from '@/db/table-rows';
import type { Principal } from '@/lib/server/access/principal';
import type { RawRecord } from './parse-request';
import { rejection, type Validation } from './validate-record';

/**
 * A sender may write to its own outboxes, for its own agents, and never as the server.
 *
 * Failure: a request for a foreign outbox is refused as a whole, since accepting any record would advance its sequence.
 * A single unauthorized record is quarantined under the sender's own agent, and never reaches the agent or session that
 * it names.
 */

/** Events that only the server writes. */
const RESERVED: ReadonlySet<string> = new Set([
  CUSTOM.quarantined,
  CUSTOM.taskElsewhere,
  CUSTOM.taskTold,
  CUSTOM.parkedAssigned,
  CUSTOM.parkedDiscarded,
  CUSTOM.messageDelivery,
  CUSTOM.commandQueued,
  CUSTOM.commandDone,
  CUSTOM.commandFailed,
  CUSTOM.obligationWaived,
  CUSTOM.obligationAccepted,
  CUSTOM.runnerAway,
  CUSTOM.runnerBack,
  CUSTOM.removed,
  CUSTOM.taskGoesOn,
]);

/** @throws AppError `forbidden` for another sender's outbox */
export function authorizeProducer(reach: Scope, { id }: Pick<ProducerRef, 'id'>): void {
  if (!isOwnProducer(reach, columnText(id))) throw foreignProducer(id);
}

export function foreignProducer(id: string): AppError {
  return new AppError(
    'forbidden',
    `This token may not write to the outbox ${JSON.stringify(id)}. An outbox id starts with the id of the token's agent.`,
  );
}

/**
 * An outbox id is the agent's id, optionally followed by a slash and more: `a1` must not match the outbox of agent
 * `a10`.
 */
function isOwnProducer(reach: Scope, id: string): boolean {
  if (reach.kind === 'everything') return true;
  if (reach.kind !== 'agents') return false;
  if (reach.producerPrefix !== undefined) return id.startsWith(reach.producerPrefix);
  if (reach.prefixes.some((prefix) => id.startsWith(prefix))) return true;
  return reach.ids.some((agentId) => id === agentId || id.startsWith(`${agentId}/`));
}

export function authorizeRecord(
  { role, scope }: Pick<Principal, 'role' | 'scope'>,
  raw: RawRecord,
  validation: Validation,
): Validation {
  if (scope.kind !== 'everything') {
    const agentId = validation.isValid ? validation.record.agentId : validation.agentId;
    if (agentId === null || !reachesAgent(scope, columnText(agentId))) {
      const rejected = validation.isValid
        ? rejection(raw, 'agent_of_another_token', 'This token is not for the record’s agent. Use that agent’s token.')
        : validation;
      return { ...rejected, agentId: agentOfScope(scope), sessionId: null };
    }
  }
  if (role !== 'runner' || !validation.isValid || validation.record.kind !== 'event') return validation;
  const name = customName(validation.record.event);
  if (name === null || !RESERVED.has(name)) return validation;
  return rejection(raw, 'reserved_name', `Only the server writes ${name}. Omit the record.`);
}

/** The agent under which operators find the sender's rejected records. */
function agentOfScope(scope: Scope): string | null {
  return scope.kind === 'agents' && scope.prefixes.length === 0 ? (scope.ids[0] ?? null) : null;
}

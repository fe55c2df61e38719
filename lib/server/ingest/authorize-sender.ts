import { CUSTOM } from '@interlude/protocol/ag-ui';
import type { ProducerRef } from '@interlude/protocol/envelope';
import { AppError } from '@interlude/protocol/errors';
import { customName } from '@interlude/protocol/event-fields';
import { reachesAgent, type Scope } from '@interlude/protocol/scope';
import { columnText } from '@/db/table-rows';
import type { Principal } from '@/lib/server/access/principal';
import type { RawRecord } from './parse-request';
import { rejection, type Validation } from './validate-record';

/**
 * What a sender may speak for: its own outboxes, its own agents, and nothing in the server's name.
 *
 * Failure: an outbox that is not the sender's is refused whole, because to take anything of it would move its sequence. A
 * single record goes to quarantine, under the sender's own agent: nothing of it reaches whomever it names.
 */

/** What only the server tells: of what people did, and of what it found out by itself. */
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

/** @throws AppError `forbidden` for an outbox of somebody else */
export function authorizeProducer(reach: Scope, { id }: Pick<ProducerRef, 'id'>): void {
  if (!isOwnProducer(reach, columnText(id))) throw foreignProducer(id);
}

export function foreignProducer(id: string): AppError {
  return new AppError(
    'forbidden',
    `This token does not open the outbox ${JSON.stringify(id)}. An outbox's id begins with the agent's that the token is for.`,
  );
}

/** Its id is the agent's, or that with more behind a slash: another agent's id may begin in any other way. */
function isOwnProducer(reach: Scope, id: string): boolean {
  if (reach.kind === 'everything') return true;
  if (reach.kind !== 'agents') return false;
  if (reach.producerPrefix !== undefined) return id.startsWith(reach.producerPrefix);
  if (reach.prefixes.some((prefix) => id.startsWith(prefix))) return true;
  return reach.ids.some((agentId) => id === agentId || id.startsWith(`${agentId}/`));
}

/** The validation of a record with regard to who sends it. */
export function authorizeRecord(
  { role, scope }: Pick<Principal, 'role' | 'scope'>,
  raw: RawRecord,
  validation: Validation,
): Validation {
  if (scope.kind !== 'everything') {
    const agentId = validation.isValid ? validation.record.agentId : validation.agentId;
    if (agentId === null || !reachesAgent(scope, columnText(agentId))) {
      const why = validation.isValid
        ? rejection(raw, 'agent_of_another_token', 'This token is not for the agent that the record names.')
        : validation;
      return { ...why, agentId: agentOfScope(scope), sessionId: null };
    }
  }
  if (role !== 'runner' || !validation.isValid || validation.record.kind !== 'event') return validation;
  const name = customName(validation.record.event);
  if (name === null || !RESERVED.has(name)) return validation;
  return rejection(raw, 'reserved_name', `Only the server writes ${name}.`);
}

/** Where the sender's operators look for what went wrong. */
function agentOfScope(scope: Scope): string | null {
  return scope.kind === 'agents' && scope.prefixes.length === 0 ? (scope.ids[0] ?? null) : null;
}

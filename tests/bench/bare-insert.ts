import type { WorkRecord } from './workload';

/** The baseline for ingest: the same rows in one statement from prepared JSON. */
export const BARE_INSERT = `INSERT INTO events
    (position, session_id, agent_id, producer_id, epoch, seq, occurred_at, received_at, type, entity_id, turn_id, payload)
  SELECT value->>'position', value->>'sessionId', value->>'agentId', value->>'producerId', value->>'epoch',
    value->>'seq', value->>'occurredAt', value->>'receivedAt', value->>'type', value->>'entityId', value->>'turnId',
    value->'payload'
  FROM json_each(?)`;

/** Builds the rows with ascending positions. */
export class BareRows {
  #position = 0;

  /** @returns the statement's argument */
  json(records: readonly WorkRecord[]): string {
    return JSON.stringify(records.map((record) => this.#row(record)));
  }

  #row({ seq, agentId, sessionId, occurredAt, event }: WorkRecord) {
    this.#position += 1;
    return {
      position: this.#position,
      sessionId,
      agentId,
      producerId: agentId,
      epoch: 1,
      seq,
      occurredAt,
      receivedAt: occurredAt,
      type: event.type,
      entityId: event.messageId ?? event.toolCallId ?? null,
      turnId: `${sessionId}-r0`,
      payload: event,
    };
  }
}

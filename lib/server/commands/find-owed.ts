import { AppError } from '@interlude/protocol/errors';
import type { Obligation } from '@interlude/protocol/read-models';
import { obligationFromRow } from '@/db/read-model-rows';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { conflict } from './refusals';

/** How much of its message what a person decided about it quotes. */
const QUOTE_LENGTH = 80;

/**
 * A reply that is owed, for a person to decide about.
 *
 * @throws AppError `not_found`; `conflict`: `obligation_settled`
 */
export async function findOwed(
  transaction: WriteTransaction,
  sessionId: string,
  messageId: string,
): Promise<Obligation> {
  const { rows } = await transaction.execute({
    sql: 'SELECT * FROM obligations WHERE session_id = ? AND message_id = ?',
    args: [columnText(sessionId), columnText(messageId)],
  });
  if (rows[0] === undefined) {
    throw new AppError(
      'not_found',
      `No reply was ever owed to ${JSON.stringify(messageId)} in the session ${JSON.stringify(sessionId)}. GET /api/v1/agents/:id/reply-obligations lists what is owed.`,
    );
  }
  const obligation = obligationFromRow(rows[0]);
  transaction.touch(`agent:${obligation.agentId}`);
  const { state } = obligation;
  if (state === 'owed') return obligation;
  const how = state === 'answered' ? 'The message was answered' : 'The reply was waived before';
  throw conflict('obligation_settled', `${how}: nothing is owed any more.`, { state });
}

/** The beginning of a message, as what was decided about it names it. */
export function quoteOf(text: string): string {
  const line = text.trim().split('\n', 1)[0] ?? '';
  const characters = [...line];
  return characters.length > QUOTE_LENGTH ? `${characters.slice(0, QUOTE_LENGTH).join('')}…` : line;
}

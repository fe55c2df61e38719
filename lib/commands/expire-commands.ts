import type { Reader } from '@/db/reader';
import { choiceArgs, EVERY_ROW, isChosen, type RowChoice } from '@/db/row-sweep';
import type { WriteTransaction } from '@/db/write-queue';
import { settle } from './acknowledge';
import { commandFromRow, type StoredCommand } from './command-row';

/** Most commands of one transaction. */
const MAX_EXPIRED = 100;

export interface Hour {
  now: number;
  /**
   * Whether the clock can be believed. A message waits for days, and what is given up is not sent again, so by any other
   * it stays; the rest would be late in any case.
   */
  isSure: boolean;
}

/** @returns the ids of commands that have expired */
export async function expiredCommands(reader: Reader, hour: Hour, except: readonly string[]): Promise<string[]> {
  const args = [hour.now, ...choiceArgs({ only: null, except })];
  const sql = `SELECT id FROM commands WHERE ${overdue(hour)} LIMIT ${MAX_EXPIRED}`;
  const { rows } = await reader.execute({ sql, args });
  return rows.map((row) => String(row.id));
}

/**
 * Gives up what nobody acted on in time, and says so where it was asked.
 * @returns how many; call again while it is not 0
 */
export async function expireCommands(
  transaction: WriteTransaction,
  hour: Hour,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const { now } = hour;
  const { rows } = await transaction.execute({
    sql: `SELECT * FROM commands WHERE ${overdue(hour)} ORDER BY expires_at LIMIT ${MAX_EXPIRED}`,
    args: [now, ...choiceArgs(choice)],
  });
  for (const stored of rows.map(commandFromRow)) {
    // It is in the agent's input, and nobody can say that the agent will not read it.
    if (stored.command.type === 'message' && stored.state === 'delivered') {
      await settle(transaction, stored, 'done', null, undefined, now);
    } else await settle(transaction, stored, 'expired', reasonOf(stored), undefined, now);
  }
  return rows.length;
}

function overdue({ isSure }: Hour): string {
  const which = isSure ? '' : `AND type <> 'message'`;
  return `state IN ('queued', 'delivered') AND expires_at <= ?1 ${which} AND ${isChosen('id', 2)}`;
}

function reasonOf({ command, state }: StoredCommand): string {
  if (state === 'delivered') return 'the runner took it and never said what became of it';
  const seconds = Math.round((command.expiresAt - command.createdAt) / 1_000);
  const minutes = Math.round(seconds / 60);
  const span =
    seconds < 120 ? `${seconds} seconds` : minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 1440)} days`;
  return `no runner took it within ${span}`;
}

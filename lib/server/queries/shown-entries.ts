import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import { EventRedactor } from '@interlude/protocol/redaction/event-redactor';
import { markRedacted, redactModel } from '@interlude/protocol/redaction/redact-model';
import type { Tally } from '@interlude/protocol/redaction/redact-value';
import { LONG_TEXT, prepareTexts } from '@interlude/protocol/redaction/redacted-text';
import type { Row } from '@libsql/client';
import { Yielder } from '@/db/yield-to-loop';
import type { Sight } from '@/lib/server/access/sight';
import { entryFromRow } from './turn-row';

/**
 * Events as a reader is shown them, before they are folded: a reader who is told no secrets folds what streams without
 * them, and so a page that it reads is what it would have folded itself.
 *
 * Ordering: rows come in the log's order.
 */
export class ShownEntries {
  readonly #redactor: EventRedactor | null;
  readonly tally: Tally = { redacted: 0 };

  /** @param isWhole whether all of each message is among the rows */
  constructor({ redacts }: Pick<Sight, 'redacts'>, isWhole = true) {
    this.#redactor = redacts ? new EventRedactor(isWhole) : null;
  }

  fromRow(row: Row): EventEntry {
    const entry = entryFromRow(row);
    if (this.#redactor === null) return entry;
    return { ...entry, event: this.#redactor.redact(entry.event, this.tally) };
  }

  /** For many of them, in order. Others get their turns in between, however long an event is. */
  async each(rows: Iterable<Row>, pace: Yielder, take: (entry: EventEntry) => void): Promise<void> {
    for (const row of rows) {
      if (this.#redactor !== null && String(row.payload).length >= LONG_TEXT) {
        await prepareTexts(entryFromRow(row).event, pace.restIfDue);
      }
      take(this.fromRow(row));
      if (pace.isDue) await pace.rest();
    }
  }
}

/**
 * A read model with parts that were folded from shown events.
 *
 * @param folded what has no secrets any more
 * @param others what was not looked at yet
 */
export async function withoutSecrets<Folded extends object, Others extends object>(
  { redacts }: Pick<Sight, 'redacts'>,
  folded: Folded,
  others: Others,
  pace = new Yielder(),
): Promise<Others & Folded & { redacted?: number }> {
  if (!redacts) return { ...others, ...folded };
  return markRedacted({ ...(await redactModel(others, pace.restIfDue)), ...folded });
}

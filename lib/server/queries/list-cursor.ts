import { AppError } from '@interlude/protocol/errors';
import { MAX_INBOX_ID } from '@interlude/protocol/limits';

/** The longest ids of all lists are those of the inbox. */
const CURSOR = new RegExp(`^([\\w-]+)\\.(\\d{1,16})\\.(.{1,${MAX_INBOX_ID}})$`, 's');

/** Stands for the beginning of a list. */
export const LIST_START = '0';

/** A place in a list that is read in pages: behind the row of this group, time and id. */
export interface ListCursor {
  group: string;
  at: number;
  id: string;
}

export function cursorText({ group, at, id }: ListCursor): string {
  return `${group}.${at}.${id}`;
}

/**
 * @returns null for the beginning
 * @throws AppError `invalid_argument` for what no answer gave as `next`
 */
export function cursorOf(text: string, groups: readonly string[]): ListCursor | null {
  if (text === LIST_START) return null;
  const [, group = '', at = '', id = ''] = CURSOR.exec(text) ?? [];
  if (!groups.includes(group)) {
    const given = text.slice(0, 300);
    const message = `after=${JSON.stringify(given)} can’t be used: it must be 0, or \`next\` of an answer.`;
    throw new AppError('invalid_argument', message, { details: { after: given } });
  }
  return { group, at: Number(at), id };
}
